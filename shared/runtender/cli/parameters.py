"""How values of command line options are read: callbacks for click, by the same rules as the fields of a message."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click

from runtender.wire.durations import parse_duration


def duration(_ctx: click.Context, _param: click.Parameter, value: str | None) -> timedelta | None:
    """Read `90m`, `1h30m` or `45s`."""
    if value is None:
        return None
    try:
        return parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def names(_ctx: click.Context, _param: click.Parameter, value: str | None) -> list[str]:
    """Read names separated by commas; none is an empty list."""
    if value is None:
        return []
    found = [name.strip() for name in value.split(",")]
    if not all(found):
        raise click.BadParameter(f"{value!r} has an empty name; write a,b")
    return found


def labels(_ctx: click.Context, _param: click.Parameter, value: Sequence[str]) -> dict[str, str]:
    """Read any number of `KEY=VALUE`."""
    found = {}
    for text in value:
        key, separator, label = text.partition("=")
        if not key or not separator:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE")
        found[key] = label
    return found

"""What a command prints: data on standard output in one of three formats, all the rest on standard error.

The JSON and the YAML of a verb are the same document; a table is a view of it for people. Nothing depends on colour:
there is none when the output is piped or NO_COLOR is set, and no control character either.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from runtender.cli.parts import Part
from runtender.cli.text import one_line

P = ParamSpec("P")
R = TypeVar("R")


class Format(StrEnum):
    """How data is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def with_format(command: Callable[Concatenate[Format, P], R]) -> Callable[P, R]:
    """Give a command the option --format, and its value as the first argument."""

    @click.option(
        "--format",
        "format_name",
        type=click.Choice([each.value for each in Format]),
        default=Format.TABLE.value,
        show_default=True,
        help="How data is printed on standard output.",
    )
    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        chosen = Format(str(kwargs.pop("format_name")))
        return command(chosen, *args, **kwargs)

    return run


def emit(chosen: Format, document: Any, view: Callable[[], Iterable[Part]]) -> None:
    """Print `document` on standard output; as a table, what `view` makes of it."""
    if chosen is Format.TABLE:
        for part in view():
            click.echo(part if isinstance(part, str) else _drawn(part))
    else:
        click.echo(_DUMPS[chosen](plain_values(document)))


def note(message: str) -> None:
    """Say something that is not data, on standard error; an empty message says nothing."""
    if message:
        click.echo(one_line(message), err=True)


def plain_values(value: Any) -> Any:
    """Return a document as JSON types: moments as RFC 3339 in UTC, maps and lists as they are."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    # YAML's safe writer takes a string enum for an unknown object.
    return str(value) if isinstance(value, str) else value


def _drawn(part: Part) -> str:
    from runtender.cli.drawing import render  # noqa: PLC0415 - rich, which only tables need

    return render(part, sys.stdout)


def _json(document: Any) -> str:
    # DEL is the one control character that JSON leaves alone.
    return json.dumps(document, indent=2).replace("\x7f", "\\u007f")


def _yaml(document: Any) -> str:
    import yaml  # noqa: PLC0415 - few ask for it

    return yaml.safe_dump(document, sort_keys=False, width=110).rstrip("\n")


_DUMPS: Mapping[Format, Callable[[Any], str]] = {Format.JSON: _json, Format.YAML: _yaml}

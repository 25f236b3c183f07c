"""The flags before a command's name, which say which plane is meant: kept until a command asks for its plane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from runtender.errors import Rejected

_FLAGS = "runtender.flags"


def with_settings(group: Callable[..., Any]) -> Callable[..., Any]:
    """Give the root of all commands the flags that say which plane is meant."""
    project = click.option("--project", metavar="ID", help="The plane's Google Cloud project.")
    others = click.option(
        "--set",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_settings,
        help="Any setting, by its key in a settings file, e.g. code_bucket=my-code; repeatable.",
    )
    return project(others(group))


def keep_flags(project: str | None, settings: Mapping[str, str]) -> None:
    """Keep the root's flags for the command that will need them."""
    named = {"SF_PROJECT_ID": project} if project else {}
    click.get_current_context().meta[_FLAGS] = {**settings, **named}


def flags() -> Mapping[str, str]:
    """Return the flags by the variables that they stand for."""
    kept: Mapping[str, str] = click.get_current_context().meta.get(_FLAGS, {})
    return kept


def _settings(_ctx: click.Context, _param: click.Parameter, value: Sequence[str]) -> dict[str, str]:
    if not value:
        return {}
    from runtender.client.settings_file import variable_of  # noqa: PLC0415 - most commands are given none

    found = {}
    for text in value:
        key, separator, content = text.partition("=")
        if not separator:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE")
        try:
            found[variable_of(key)] = content
        except Rejected as rejected:
            raise click.BadParameter(str(rejected)) from rejected
    return found

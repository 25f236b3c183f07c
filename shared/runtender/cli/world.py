"""Handing a command the plane that it works on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from runtender.cli.exits import input_faults
from runtender.cli.output import note
from runtender.client.settings_file import variable_of
from runtender.client.world import World, configure, open_world
from runtender.errors import Rejected

P = ParamSpec("P")
R = TypeVar("R")

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


def with_world(command: Callable[Concatenate[World, P], R]) -> Callable[P, R]:
    """Hand a command the world as its first argument."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return command(current_world(), *args, **kwargs)

    return run


def current_world() -> World:
    """Return the world of this invocation, opened on first use; `InputFailure` says what to set where there is none."""
    root = click.get_current_context().find_root()
    if not isinstance(root.obj, World):
        with input_faults():
            note(configure(flags()).warning)
            root.obj = open_world()
    return root.obj


def _settings(_ctx: click.Context, _param: click.Parameter, value: Sequence[str]) -> dict[str, str]:
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

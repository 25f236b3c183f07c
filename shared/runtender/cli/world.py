"""Handing a command the plane that it works on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import click

from runtender.cli.exits import input_faults
from runtender.cli.flags import flags
from runtender.cli.output import note
from runtender.client.world import World, configure, open_world

P = ParamSpec("P")
R = TypeVar("R")


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

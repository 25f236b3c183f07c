"""What a command works on: the plane's settings and the seams to its store, objects and topics.

A command never picks an adapter. It is handed a `World`; the default one is wired on first use, from the environment
or from the local cloud of the folder.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import click

from runtender.cli.exits import Failure, InputFailure, input_faults
from runtender.cli.local_cloud import cloud_environment, cloud_folder
from runtender.cli.output import note
from runtender.ports import Clock, Objects, Store, Topics
from runtender.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")

_NO_PLANE = (
    "no plane to talk to: set SF_PROJECT_ID and SF_CODE_BUCKET for the one in a Google Cloud project, "
    "or start a local one with 'runtender local up'"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """The plane as a command sees it. `answer_wait` is how long a command waits for the answer to a message."""

    settings: Settings
    store: Store
    objects: Objects
    topics: Topics
    clock: Clock
    # A cold start and a few commits take seconds; a prompt that hangs for longer helps nobody.
    answer_wait: timedelta = timedelta(seconds=30)


def with_world(command: Callable[Concatenate[World, P], R]) -> Callable[P, R]:
    """Hand a command the world as its first argument."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        root = click.get_current_context().find_root()
        if not isinstance(root.obj, World):
            root.obj = open_world()
        return command(root.obj, *args, **kwargs)

    return run


def open_world() -> World:
    """Wire the world of the environment; `Failure` says what to set where there is none."""
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - as for the adapters

    adopted = plane_environment(os.environ, Path.cwd())
    # The official clients read their emulators' addresses from the environment of the process.
    os.environ.update(adopted)
    try:
        with input_faults():
            return _wired()
    except GoogleAuthError as error:
        remedy = "run 'gcloud auth application-default login'"
        raise Failure(f"no Google credentials: {error}; {remedy}") from error


def _wired() -> World:
    from runtender import wiring  # noqa: PLC0415 - `--help` need not wait for the adapters

    settings = wiring.settings()
    return World(
        settings=settings,
        store=wiring.store(settings),
        objects=wiring.objects(settings),
        topics=wiring.topics(settings),
        clock=wiring.clock(),
    )


def plane_environment(environment: Mapping[str, str], start: Path) -> Mapping[str, str]:
    """Return what to add to `environment`: the local cloud's variables, unless SF_BACKEND names the backend.

    Raises `Failure` where neither the environment nor a local cloud of `start` says which plane is meant.
    """
    if environment.get("SF_BACKEND"):
        return {}
    folder = cloud_folder(start)
    local = None if folder is None else cloud_environment(folder)
    if local is not None:
        project = environment.get("SF_PROJECT_ID")
        if project and project != local.get("SF_PROJECT_ID"):
            note(f"using the local cloud of {folder}; set SF_BACKEND=google for {project}")
        return local
    if not any(name.startswith("SF_") for name in environment):
        raise InputFailure(_NO_PLANE)
    return {}

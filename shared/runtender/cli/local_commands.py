"""`runtender local`: the local cloud from the command line. What it is lives in `runtender.local`; this only asks for it.

The local cloud itself is an extra, and heavy: it is imported by the command that starts one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from runtender.cli.exits import Exit, input_faults, interrupted
from runtender.cli.lazy import LazyGroup
from runtender.cli.local_options import backend_option, local_extra, scenario_option, time_scale_option
from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.parts import Part, facts
from runtender.client.local_cloud import cloud_folder, home_folder
from runtender.local import stack


@click.group(cls=LazyGroup, places={"demo": "runtender.cli.demo:demo"})
def local() -> None:
    """Run the whole plane on this machine, with real work on simulated machines."""


@local.command()
@time_scale_option
@scenario_option
@backend_option
@with_format
def up(chosen: Format, time_scale: float | None, scenario: str | None, backend: str) -> None:
    """Start a local cloud in this folder; the other commands find it from here and from the folders below."""
    with local_extra():
        from runtender.local import launch  # noqa: PLC0415 - see the module's first lines
        from runtender.local.backend import BackendName  # noqa: PLC0415 - the same
    with input_faults():
        options = launch.Options(
            folder=Path.cwd(), time_scale=time_scale, scenario=scenario, backend=BackendName(backend)
        )
    with interrupted(
        "the local cloud was not started whole; 'runtender local down' removes what there is of it"
    ):
        document = launch.up(options)
    _show(chosen, document)


@local.command()
@with_format
def down(chosen: Format) -> None:
    """Stop the local cloud of this folder, or of the nearest above that ever had one, and all that runs in it."""
    here = Path.cwd()
    # Said twice it must not go on to the cloud of a folder further up.
    _show(chosen, stack.down(home_folder(here) or here))


@local.command()
@with_format
def status(chosen: Format) -> None:
    """Show the local cloud's processes and addresses; exit code 1 if none is running."""
    document = stack.status(_folder())
    _show(chosen, document)
    if not document["running"]:
        note("no local cloud is running here; 'runtender local up' starts one")
        click.get_current_context().exit(Exit.ERROR)


@local.command("env")
@with_format
def env(chosen: Format) -> None:
    """Print the local cloud's environment for a shell: eval "$(runtender local env)"."""
    variables = stack.environment(_folder())
    emit(
        chosen,
        variables,
        lambda: (f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
    )


def _folder() -> Path:
    """Return the folder whose local cloud is meant: the nearest one upwards that has one, else this one."""
    return cloud_folder(Path.cwd()) or Path.cwd()


def _show(chosen: Format, document: Mapping[str, Any]) -> None:
    def view() -> Iterable[Part]:
        yield facts(_flat(document))

    emit(chosen, document, view)


def _flat(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)

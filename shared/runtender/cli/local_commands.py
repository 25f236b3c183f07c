"""`runtender local`: the local cloud from the command line. What it is lives in `runtender.local`; this only asks for it.

The local cloud is an extra, and heavy: it is imported by the command that needs it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from runtender.cli.demo_report import demo_exit, demo_parts, unmet
from runtender.cli.exits import Exit, Failure, exit_for, input_faults, interrupted
from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.parts import Part, facts, table
from runtender.cli.staging import build_package, upload_package
from runtender.cli.wait import follow_run
from runtender.client.local_cloud import cloud_folder, home_folder
from runtender.ports import Objects

_time_scale = click.option(
    "--time-scale",
    type=click.FloatRange(min=0, min_open=True),
    help="How many times faster than Google Cloud the local one is.",
)
_scenario = click.option(
    "--scenario", metavar="NAME", help="A scenario: a shipped one by name, or a YAML file."
)
_backend = click.option(
    "--backend",
    type=click.Choice(["embedded", "google"]),
    default="embedded",
    show_default=True,
    help="Where documents and messages are: in our own store and topics, or in Google's Firestore and Pub/Sub emulators.",
)


@click.group()
def local() -> None:
    """Run the whole plane on this machine, with real work on simulated machines."""


@local.command()
@_time_scale
@_scenario
@_backend
@with_format
def up(chosen: Format, time_scale: float | None, scenario: str | None, backend: str) -> None:
    """Start a local cloud in this folder; the other commands find it from here and from the folders below."""
    with _local_extra():
        from runtender.local import stack  # noqa: PLC0415 - see the module's first lines
        from runtender.local.backend import BackendName  # noqa: PLC0415 - the same
    with input_faults():
        options = stack.Options(
            folder=Path.cwd(), time_scale=time_scale, scenario=scenario, backend=BackendName(backend)
        )
    with interrupted(
        "the local cloud was not started whole; 'runtender local down' removes what there is of it"
    ):
        document = stack.up(options)
    _show(chosen, document)


@local.command()
@with_format
def down(chosen: Format) -> None:
    """Stop the local cloud of this folder, or of the nearest above that ever had one, and all that runs in it."""
    with _local_extra():
        from runtender.local import stack  # noqa: PLC0415 - see the module's first lines
    here = Path.cwd()
    # Said twice it must not go on to the cloud of a folder further up.
    _show(chosen, stack.down(home_folder(here) or here))


@local.command()
@with_format
def status(chosen: Format) -> None:
    """Show the local cloud's processes and addresses; exit code 1 if none is running."""
    with _local_extra():
        from runtender.local import stack  # noqa: PLC0415 - see the module's first lines
    document = stack.status(_folder())
    _show(chosen, document)
    if not document["running"]:
        note("no local cloud is running here; 'runtender local up' starts one")
        click.get_current_context().exit(Exit.ERROR)


@local.command("env")
@with_format
def env(chosen: Format) -> None:
    """Print the local cloud's environment for a shell: eval "$(runtender local env)"."""
    with _local_extra():
        from runtender.local import stack  # noqa: PLC0415 - see the module's first lines
    variables = stack.environment(_folder())
    emit(
        chosen,
        variables,
        lambda: (f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
    )


@local.command()
@_time_scale
@_scenario
@_backend
@click.option("--list-scenarios", is_flag=True, help="Only say which scenarios are shipped.")
@click.option("--keep", is_flag=True, help="Leave the local cloud's folder, with its logs, to be looked at.")
@with_format
def demo(
    chosen: Format,
    /,
    *,
    time_scale: float | None,
    scenario: str | None,
    backend: str,
    list_scenarios: bool,
    keep: bool,
) -> None:
    """Run a real forecast from submit message to cleaned-up machine, in a local cloud of its own.

    Ends with the exit code of the run's outcome, or 1 if anything is left over or not as its scenario expects it.
    """
    if list_scenarios:
        _list_scenarios(chosen)
        return
    with _local_extra():
        from runtender.local import demo as local_demo  # noqa: PLC0415 - see the module's first lines
        from runtender.local.backend import BackendName  # noqa: PLC0415 - the same
    with input_faults():
        options = local_demo.Options(
            time_scale=time_scale, scenario=scenario, backend=BackendName(backend), keep=keep
        )
    with interrupted("the demo is stopped, and its local cloud with it"):
        document = local_demo.run_demo(options, say=note, follow=follow_run, stage=_stage, exit_code=exit_for)
    emit(chosen, document, lambda: demo_parts(document))
    for sentence in unmet(document):
        note(sentence)
    click.get_current_context().exit(demo_exit(document))


def _list_scenarios(chosen: Format) -> None:
    with _local_extra():
        from runtender.local.scenarios import descriptions  # noqa: PLC0415 - see the module's first lines
    documents = [{"name": name, "description": text} for name, text in descriptions().items()]

    def view() -> Iterable[Part]:
        yield table(("NAME", "DESCRIPTION"), [(each["name"], each["description"]) for each in documents])

    emit(chosen, {"scenarios": documents}, view)


def _stage(folder: Path, objects: Objects, bucket: str) -> tuple[str, str | None]:
    """Stage a package as `runtender stage` does; return its URI and entry point."""
    package = build_package(folder)
    uri, _ = upload_package(package, objects, bucket)
    return str(uri), package.entrypoint


def _folder() -> Path:
    """Return the folder whose local cloud is meant: the nearest one upwards that has one, else this one."""
    return cloud_folder(Path.cwd()) or Path.cwd()


@contextmanager
def _local_extra() -> Iterator[None]:
    """Say which extra is missing when an import fails for want of it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("runtender"):
            raise
        raise Failure(f"the local cloud needs {error.name}; install runtender[local]") from error


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

"""`runtender local demo`: a real run from submit message to cleaned-up machine, in a local cloud of its own.

The local cloud is an extra, and `--help` need not wait for it: it is imported when a demo begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from runtender.cli.demo_report import demo_exit, demo_parts, unmet
from runtender.cli.exits import input_faults, interrupted
from runtender.cli.local_options import backend_option, local_extra, scenario_option, time_scale_option
from runtender.cli.outcomes import exit_for
from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.parts import Part, table
from runtender.cli.staging import build_package, upload_package
from runtender.cli.wait import follow_run
from runtender.ports import Objects


@click.command()
@time_scale_option
@scenario_option
@backend_option
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
    with local_extra():
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
    with local_extra():
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

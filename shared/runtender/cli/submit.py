"""`runtender submit`: check a run config on this machine, publish it, and say what the plane made of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from runtender.capacity.admission import PRIORITY_STEP
from runtender.cli.answers import answer_document, answer_parts, awaited, published, refusal
from runtender.cli.exits import input_faults
from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.parameters import duration, labels, max_cost_option, names
from runtender.cli.reports import outcome_parts
from runtender.cli.wait import leave, watch_to_end
from runtender.cli.world import with_world
from runtender.client.config_file import read_config
from runtender.client.requests import Answer, AnswerState, new_request_id
from runtender.client.submission import Wishes, submit_config
from runtender.client.world import World
from runtender.model import SubmitKind
from runtender.wire.messages import MAX_PRIORITY


@click.command()
@click.argument("config", metavar="CONFIG")
@click.option(
    "--wait", "waits", is_flag=True, help="Stay until the run has ended, and end with its exit code."
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, like 'runtender plan', and leave.")
@click.option("--no-confirm", is_flag=True, help="Publish and leave; do not wait for the plane's answer.")
@click.option("--force", is_flag=True, help="Start a new attempt although this config has run before.")
@click.option(
    "--every",
    metavar="SPAN",
    callback=duration,
    help="Start at most one attempt in each such period, e.g. 1d: for timers, which may fire twice.",
)
@click.option(
    "--run-limit", metavar="SPAN", callback=duration, help="How long each family may run, e.g. 90m."
)
@click.option(
    "--capacity-wait", metavar="SPAN", callback=duration, help="How long to look for capacity, e.g. 45m."
)
@max_cost_option
@click.option(
    "--label", "labels", metavar="KEY=VALUE", multiple=True, callback=labels, help="A label; repeatable."
)
@click.option(
    "--priority",
    type=click.IntRange(-MAX_PRIORITY, MAX_PRIORITY),
    default=0,
    show_default=True,
    help="Where the plane limits what runs at once (SF_LIMITS), the higher goes first: "
    f"a step is worth {PRIORITY_STEP // timedelta(minutes=1)} minutes of waiting.",
)
@click.option("--models", metavar="A,B", callback=names, help="Only these models of the config.")
@click.option("--families", metavar="A,B", callback=names, help="Only these model families.")
@click.option("--image", help="Container image of the workers.")
@click.option("--package-uri", metavar="URI", help="Code of the workers, as printed by 'runtender stage'.")
@click.option("--entrypoint", metavar="NAME", help="Where the code begins: package.module:function.")
@click.option("--request-id", metavar="ID", help="Your own id of this request; repeated, it changes nothing.")
@click.option(
    "--kind",
    type=click.Choice([each.value for each in SubmitKind]),
    default=SubmitKind.FORECAST.value,
    show_default=True,
    help="What CONFIG describes: a forecast, or one plain container.",
)
@with_format
@with_world
def submit(
    world: World,
    chosen: Format,
    /,
    config: str,
    *,
    waits: bool,
    dry_run: bool,
    no_confirm: bool,
    request_id: str | None,
    kind: str,
    **wishes: Any,
) -> None:
    """Publish the run that CONFIG describes: a JSON or YAML file, '-' for standard input, or a gs:// URI.

    Config and panel are checked first; nothing is published while a fault is left. What the reference worker cannot do
    (read a table, know the frequency, forecast over gaps) is a fault where the run's entry point is its own,
    forecast_worker.main:main; any other worker may be able to, so there it is a warning.
    """
    if waits and no_confirm:
        raise click.UsageError("--wait needs the plane's answer; leave out --no-confirm")
    request_id = request_id or new_request_id()
    with input_faults():
        content = read_config(config, world.objects)
        if dry_run:
            from runtender.cli.plan import show_plan  # noqa: PLC0415 - looks at clusters and quota, a submit does not

            show_plan(world, chosen, content, Wishes(kind=SubmitKind(kind), **wishes))
            return
        panel = submit_config(world, content, request_id, Wishes(kind=SubmitKind(kind), **wishes))
    note(panel.seen)
    for warning in panel.warnings:
        note(f"warning: {warning}")
    if no_confirm:
        _report(chosen, published(request_id))
        return
    _conclude(world, chosen, awaited(world, request_id), waits=waits, recurring=wishes["every"] is not None)


def _conclude(world: World, chosen: Format, answer: Answer, *, waits: bool, recurring: bool) -> None:
    """Print what the plane made of the request, or with `waits` what became of its run; exit by that."""
    if refused := refusal([answer]):
        _report(chosen, answer)
        raise refused
    if answer.state is AnswerState.DUPLICATE:
        note(_why_nothing_new(answer, recurring=recurring))
    if waits and answer.run_id is not None:
        note(f"run {answer.run_id} is {answer.state}")
        (record,) = ended = watch_to_end(world, [answer.run_id])
        emit(chosen, record.document, lambda: outcome_parts(record))
        leave(ended)
    _report(chosen, answer)


def _why_nothing_new(answer: Answer, *, recurring: bool) -> str:
    if recurring:
        return f"run {answer.run_id} starts no attempt: {'; '.join(answer.errors)}"
    return f"run {answer.run_id} has this config already; --force starts a new attempt"


def _report(chosen: Format, answer: Answer) -> None:
    emit(chosen, answer_document(answer), lambda: answer_parts([answer]))

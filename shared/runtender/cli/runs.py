"""`runtender list`, `describe` and `cancel`: the runs there are, one run whole, and the wish to end it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

import click
from rich.console import RenderableType

from runtender.cli.output import Format, emit, facts, note, with_format
from runtender.cli.records import load_run, newest_runs
from runtender.cli.reports import list_parts, run_parts
from runtender.cli.requests import answer, publish, refusal
from runtender.cli.world import World, with_world
from runtender.wire.documents import run_from_document


@click.command("list")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most so many runs."
)
@with_format
@with_world
def list_runs(world: World, chosen: Format, limit: int) -> None:
    """List the newest runs, newest first."""
    documents = newest_runs(world.store, limit)
    emit(
        chosen,
        {"runs": documents},
        lambda: list_parts([run_from_document(document) for document in documents], world.clock.now()),
    )
    if not documents:
        note("no runs yet; 'runtender submit CONFIG' starts one")


@click.command()
@click.argument("run_id", metavar="RUN")
@with_format
@with_world
def describe(world: World, chosen: Format, run_id: str) -> None:
    """Show everything about RUN: its jobs, the placements tried, deadlines, cells, history."""
    record = load_run(world.store, run_id)
    emit(chosen, record.document, lambda: run_parts(record, world.clock.now()))


@click.command()
@click.argument("run_id", metavar="RUN")
@with_format
@with_world
def cancel(world: World, chosen: Format, run_id: str) -> None:
    """Ask the plane to end RUN. What it has written stays; 'runtender wait' shows when it has ended."""
    load_run(world.store, run_id)
    request_id = str(uuid.uuid4())
    publish(world, {"action": "cancel", "run_id": run_id, "request_id": request_id})
    row = answer(world, request_id)
    document = {
        "request_id": request_id,
        "state": row["state"],
        "run_id": run_id,
        "errors": list(row["errors"]),
    }

    def view() -> Iterable[RenderableType]:
        yield facts([("Run", run_id), ("Cancel", row["state"]), ("Request", request_id)])

    emit(chosen, document, view)
    if refused := refusal(row):
        raise refused

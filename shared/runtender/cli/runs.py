"""`runtender list`, `describe` and `history`: the runs there are, one run whole, and what became of it step by step."""

from __future__ import annotations

import click

from runtender.cli.filters import FILTER_HELP, NEWEST_FIRST, SORT_HELP, Filter, Order, filters, order
from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.parameters import chosen_jobs, family_option, run_argument
from runtender.cli.reports import history_parts, list_parts, run_parts
from runtender.cli.world import with_world
from runtender.client.records import load_run, newest_runs, queue_places, whole_history
from runtender.client.world import World
from runtender.wire.codec import encode
from runtender.wire.documents import run_from_document

# Firestore can filter by any field, but not in order of time without an index for each; headers are small.
_LOOKED_AT = 1000


@click.command("list")
@click.option("--filter", "wanted", metavar="FILTER", multiple=True, callback=filters, help=FILTER_HELP)
@click.option(
    "--sort",
    "sorting",
    metavar="FIELD",
    default="-created",
    show_default=True,
    callback=order,
    help=SORT_HELP,
)
@click.option(
    "--limit", type=click.IntRange(1, _LOOKED_AT), default=20, show_default=True, help="At most so many runs."
)
@with_format
@with_world
def list_runs(world: World, chosen: Format, wanted: tuple[Filter, ...], sorting: Order, limit: int) -> None:
    """List runs, newest first.

    Filters must all hold; patterns know * and no case, and - stands for nothing. Filtered or sorted are the newest 1000.
    """
    now = world.clock.now()
    looked_at = limit if sorting == NEWEST_FIRST and not wanted else _LOOKED_AT
    documents = {document["run_id"]: document for document in newest_runs(world.store, looked_at)}
    runs = [run_from_document(document) for document in documents.values()]
    found = sorting.sorted([run for run in runs if all(each.takes(run) for each in wanted)], now)[:limit]
    emit(
        chosen,
        {"runs": [documents[run.run_id] for run in found]},
        lambda: list_parts(found, now, queue_places(world.store)),
    )
    if not documents:
        note("no runs yet; 'runtender submit CONFIG' starts one")
    elif not found:
        note(f"none of the newest {len(documents)} runs is like that")


@click.command()
@run_argument()
@with_format
@with_world
def describe(world: World, chosen: Format, run_id: str) -> None:
    """Show everything about RUN: its jobs, the placements tried, deadlines, cells, history."""
    record = load_run(world.store, run_id)
    emit(chosen, record.document, lambda: run_parts(record, world.clock.now()))


@click.command()
@run_argument()
@family_option
@with_format
@with_world
def history(world: World, chosen: Format, run_id: str, family: str | None) -> None:
    """Show every step that the jobs of RUN have taken, of all attempts, oldest first."""
    jobs = chosen_jobs(load_run(world.store, run_id), family, attempts=True)
    rows = [(job, row) for job in jobs for row in whole_history(world.store, job)]
    rows.sort(key=lambda entry: entry[1].at)
    documents = [
        {"job_key": job.job_key, "family": job.family, "attempt": job.attempt, **encode(row)}
        for job, row in rows
    ]
    emit(chosen, {"run_id": run_id, "history": documents}, lambda: history_parts(rows))

"""`runtender cancel` and `retry`: the wish to end runs, and to try again what did not succeed."""

from __future__ import annotations

import click

from runtender.cli.answers import answer_document, answer_parts, awaited, refusal
from runtender.cli.output import Format, emit, with_format
from runtender.cli.parameters import names, run_argument
from runtender.cli.world import with_world
from runtender.client.records import load_run
from runtender.client.requests import request_cancel, request_retry
from runtender.client.world import World


@click.command()
@run_argument(several=True)
@with_format
@with_world
def cancel(world: World, chosen: Format, run_ids: tuple[str, ...]) -> None:
    """Ask the plane to end each RUN. What it has written stays; 'runtender wait' shows when it has ended."""
    wanted = tuple(dict.fromkeys(run_ids))
    for run_id in wanted:
        # Before anything is published: a slip in the last name must not end the first run.
        load_run(world.store, run_id)
    request_ids = [request_cancel(world, run_id) for run_id in wanted]
    answers = [awaited(world, request_id) for request_id in request_ids]
    emit(chosen, {"answers": [answer_document(answer) for answer in answers]}, lambda: answer_parts(answers))
    if refused := refusal(answers):
        raise refused


@click.command()
@run_argument()
@click.option(
    "--family", "families", metavar="A,B", callback=names, help="Only these; else all that did not succeed."
)
@with_format
@with_world
def retry(world: World, chosen: Format, run_id: str, families: list[str]) -> None:
    """Start a new attempt of what did not succeed in RUN, under the plan that it was accepted with."""
    answer = awaited(world, request_retry(world, run_id, families))
    emit(chosen, answer_document(answer), lambda: answer_parts([answer]))
    if refused := refusal([answer]):
        raise refused

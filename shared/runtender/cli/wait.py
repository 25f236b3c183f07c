"""`runtender wait`: stay with a run until its outcome is known, and end with the exit code of that outcome."""

from __future__ import annotations

from datetime import timedelta
from typing import NoReturn

import click

from runtender.cli.exits import Failure, exit_for, interrupted
from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.parameters import duration
from runtender.cli.progress import progress
from runtender.cli.records import RunRecord, load_run
from runtender.cli.reports import outcome_parts
from runtender.cli.watching import Picture, RunWatch
from runtender.cli.world import World, with_world
from runtender.model import CleanupState, Outcome, Timing
from runtender.ports import Clock, Store

# How often the elapsed time is drawn again, and the bounds are looked at.
_BEAT_S = 1.0
_MISSED_LOOKS = 3
# A local cloud runs many times faster than this machine starts a process.
_LEAST_SILENCE = timedelta(minutes=1)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option(
    "--timeout", metavar="DURATION", callback=duration, help="Give up waiting after this long, e.g. 2h."
)
@with_format
@with_world
def wait(world: World, chosen: Format, run_id: str, timeout: timedelta | None) -> None:
    """Wait until RUN has ended, showing how far it is.

    Ends with 0 succeeded, 3 failed or partial, 4 timed out, 5 no capacity, 6 cancelled. Ctrl-C leaves the run alone.
    """
    wait_for(world, chosen, run_id, timeout)


def wait_for(world: World, chosen: Format, run_id: str, timeout: timedelta | None = None) -> NoReturn:
    """Follow a run to its outcome, print it, and leave with its exit code; `Failure` for an unknown run."""
    load_run(world.store, run_id)
    with interrupted(
        f"no longer watching; run {run_id} goes on. 'runtender wait {run_id}' takes it up again"
    ):
        outcome = follow_run(world.store, world.clock, world.settings.timing, run_id, timeout)
    record = load_run(world.store, run_id)
    emit(chosen, record.document, lambda: outcome_parts(record))
    _tell_cleanup(record)
    click.get_current_context().exit(exit_for(outcome))


def follow_run(
    store: Store, clock: Clock, timing: Timing, run_id: str, timeout: timedelta | None = None
) -> Outcome:
    """Show a run's progress until its outcome is known, and return it.

    Raises `Failure` when `timeout` has passed, and when the plane has fallen silent.
    """
    picture = Picture()
    begun = heard = clock.now()
    with progress() as display, RunWatch(store, run_id) as watch:
        while True:
            fresh = watch.next(_BEAT_S)
            now = clock.now()
            if fresh is not None:
                picture, heard = fresh, now
            display.show(picture, now)
            if picture.run is not None and picture.run.outcome is not None:
                # The header may be seen before the jobs that it sums up.
                display.show(_now_stored(store, run_id), now)
                return picture.run.outcome
            if timeout is not None and now - begun >= timeout:
                raise Failure(f"run {run_id} has not ended yet; 'runtender wait {run_id}' goes on waiting")
            if now - heard > _silence(timing):
                raise Failure(_silent(run_id, now - heard))


def _now_stored(store: Store, run_id: str) -> Picture:
    record = load_run(store, run_id)
    return Picture(run=record.run, jobs={job.family: job for job in record.latest})


def _silence(timing: Timing) -> timedelta:
    """Return how long nothing may be written: a working plane looks at each job once per watch interval."""
    return max(_LEAST_SILENCE, _MISSED_LOOKS * timing.watch_interval + 2 * timing.tick)


def _silent(run_id: str, quiet: timedelta) -> str:
    minutes = quiet // timedelta(minutes=1)
    remedy = "see whether its tick is firing and its functions answer"
    return f"run {run_id} has no outcome, and the plane has written nothing for {minutes} minutes; {remedy}"


def _tell_cleanup(record: RunRecord) -> None:
    states = {job.cleanup.state for job in record.latest}
    if CleanupState.STUCK in states:
        note(
            f"something of the run cannot be removed yet; 'runtender describe {record.run.run_id}' shows what"
        )
    elif CleanupState.PENDING in states:
        note("the machines are still being removed")

"""`runtender wait`: stay with runs until their outcomes are known, and end with the exit code of the worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NoReturn

import click

from runtender.cli.exits import Failure, interrupted
from runtender.cli.outcomes import exit_for, worst
from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.parameters import duration, run_argument
from runtender.cli.progress import progress
from runtender.cli.reports import outcomes_parts
from runtender.cli.world import with_world
from runtender.client.records import RunRecord, load_run
from runtender.client.watching import RunsWatch
from runtender.client.world import World
from runtender.model import CleanupState, Outcome, Timing
from runtender.ports import Clock, Store

# How often the elapsed time is drawn again, and the bounds are looked at.
_BEAT_S = 1.0
_MISSED_LOOKS = 3
# A local cloud runs many times faster than this machine starts a process.
_LEAST_SILENCE = timedelta(minutes=1)
_PATIENCE = timedelta(minutes=5)


@click.command()
@run_argument(several=True)
@click.option(
    "--timeout", metavar="SPAN", callback=duration, help="Give up waiting after this long, e.g. 2h."
)
@with_format
@with_world
def wait(world: World, chosen: Format, run_ids: tuple[str, ...], timeout: timedelta | None) -> None:
    """Wait until every RUN has ended, showing how far it is.

    Ends with 0 succeeded, 3 failed or partial, 4 timed out, 5 no capacity, 6 cancelled; of several runs, with the first
    of 3, 4, 5, 6 that one of them has. Ctrl-C leaves the runs alone.
    """
    ended = watch_to_end(world, run_ids, timeout)
    documents = {"runs": [record.document for record in ended]}
    emit(chosen, documents, lambda: outcomes_parts(ended))
    leave(ended)


def watch_to_end(
    world: World, run_ids: Sequence[str], timeout: timedelta | None = None
) -> tuple[RunRecord, ...]:
    """Follow runs to their outcomes and return them; raises `UnknownRun`, and what `follow_runs` raises."""
    wanted = tuple(dict.fromkeys(run_ids))
    for run_id in wanted:
        load_run(world.store, run_id)
    names = " ".join(wanted)
    with interrupted(
        f"no longer watching; run {', '.join(wanted)} goes on. 'runtender wait {names}' takes it up again"
    ):
        follow_runs(
            world.store, world.clock, world.settings.timing, wanted, timeout=timeout, patience=world.patience
        )
    return tuple(load_run(world.store, run_id) for run_id in wanted)


def leave(ended: Sequence[RunRecord]) -> NoReturn:
    """Say what is left to clean up, and end the command with the exit code of the worst outcome."""
    for record in ended:
        _tell_cleanup(record)
    outcomes = [record.run.outcome for record in ended]
    click.get_current_context().exit(worst(exit_for(outcome) for outcome in outcomes if outcome is not None))


def follow_run(
    store: Store, clock: Clock, timing: Timing, run_id: str, timeout: timedelta | None = None
) -> Outcome:
    """Show a run's progress until its outcome is known, and return it; raises what `follow_runs` raises."""
    return follow_runs(store, clock, timing, [run_id], timeout=timeout)[run_id]


def follow_runs(
    store: Store,
    clock: Clock,
    timing: Timing,
    run_ids: Sequence[str],
    *,
    timeout: timedelta | None = None,
    patience: timedelta = _PATIENCE,
) -> Mapping[str, Outcome]:
    """Show the progress of runs until all their outcomes are known, and return these.

    Raises `Failure` when `timeout` has passed, and when the plane has fallen silent about one of them.
    """
    begun = clock.now()
    heard = dict.fromkeys(run_ids, begun)
    seen: dict[str, RunRecord] = {}
    outcomes: dict[str, Outcome] = {}
    several = len(run_ids) > 1
    with (
        progress(several=several) as display,
        RunsWatch(store, run_ids, patience=patience.total_seconds()) as watch,
    ):
        while heard:
            fresh, now = watch.next(_BEAT_S), clock.now()
            if fresh is not None and fresh.run.run_id in heard:
                run_id = fresh.run.run_id
                seen[run_id], heard[run_id] = fresh, now
                if fresh.run.outcome is not None:
                    # The header may be seen before the jobs that it sums up.
                    seen[run_id] = load_run(store, run_id)
                    outcomes[run_id] = fresh.run.outcome
                    del heard[run_id]
            display.show(list(seen.values()), now)
            _check(heard, now, begun, timeout, _silence(timing))
    return outcomes


def _check(
    heard: Mapping[str, datetime],
    now: datetime,
    begun: datetime,
    timeout: timedelta | None,
    silence: timedelta,
) -> None:
    if heard and timeout is not None and now - begun >= timeout:
        names = " ".join(heard)
        raise Failure(f"run {', '.join(heard)} has not ended yet; 'runtender wait {names}' goes on waiting")
    for run_id, at in heard.items():
        if now - at > silence:
            raise Failure(_silent(run_id, now - at))


def _silence(timing: Timing) -> timedelta:
    """Return how long nothing may be written: a working plane looks at each job once per watch interval."""
    return max(_LEAST_SILENCE, _MISSED_LOOKS * timing.watch_interval + 2 * timing.tick)


def _silent(run_id: str, quiet: timedelta) -> str:
    minutes = quiet // timedelta(minutes=1)
    remedy = "'runtender doctor' shows whether its tick is firing and its functions answer"
    return f"run {run_id} has no outcome, and the plane has written nothing for {minutes} minutes; {remedy}"


def _tell_cleanup(record: RunRecord) -> None:
    states = {job.cleanup.state for job in record.latest}
    if CleanupState.STUCK in states:
        note(
            f"something of the run cannot be removed yet; 'runtender describe {record.run.run_id}' shows what"
        )
    elif CleanupState.PENDING in states:
        note("what is left of it is still being removed")

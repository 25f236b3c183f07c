"""How far a run is, on standard error: a table that is drawn again on a terminal, a line per change elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Protocol

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from runtender.cli.output import console_for, note, table
from runtender.cli.text import moment, span
from runtender.client.records import RunRecord
from runtender.model import Job, Phase, SubmitKind

# Cells may land every second; a log of the progress needs them less often.
_BETWEEN_CELLS = timedelta(seconds=10)


class Progress(Protocol):
    """Somewhere to show progress."""

    def show(self, records: Sequence[RunRecord], now: datetime) -> None:
        """Show runs as last seen; called about each second, and at each change."""


@contextmanager
def progress(*, several: bool = False) -> Iterator[Progress]:
    """Lend the progress display that fits standard error; what it has drawn on a terminal is gone afterwards.

    `several` names the run in each line.
    """
    if not sys.stderr.isatty():
        yield _Lines(several=several)
        return
    console = console_for(sys.stderr)
    with Live(
        console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as live:
        yield _Drawn(live)


def placements(job: Job) -> int:
    """Return how many placements have been tried, the present one included."""
    return 1 + max((row.placement for row in job.resources), default=-1)


def cells(job: Job) -> str:
    """Say what has landed: the summary's cells once there is one, until then the files seen; nothing of a task."""
    if job.plan.kind is SubmitKind.TASK:
        return ""
    if job.summary is not None:
        failed = f" ({job.summary.n_error} failed)" if job.summary.n_error else ""
        return f"{job.summary.n_cells} cells{failed}"
    return f"{job.cells.count} cell file{'' if job.cells.count == 1 else 's'}"


def workers(job: Job) -> str:
    """Say how many of a job's many workers are done, and how many have failed; nothing of a job that has one machine."""
    if job.indexes is None:
        return ""
    done, failed = _counted(job.indexes.completed), _counted(job.indexes.failed)
    words = f"{done} of {job.indexes.completions} workers done"
    return f"{words}, {failed} failed" if job.indexes.failed else words


def _counted(indexes: str) -> str:
    """Count what a list such as `0,2-5` names; of one that was cut, what is left of it; of what is none, nothing."""
    pairs = [part.partition("-") for part in indexes.split(",") if part not in {"", "..."}]
    try:
        count = sum(int(last or first) - int(first) + 1 for first, _, last in pairs)
    except ValueError:
        return "?"
    return f"over {count}" if indexes.endswith("...") else str(count)


def landed(job: Job) -> str:
    """Say what a job has brought about so far: cells and workers."""
    return ", ".join(filter(None, (cells(job), workers(job))))


def elapsed(job: Job, now: datetime) -> str:
    """Say how long the job's present stage has taken, against its limit while it has one."""
    if job.outcome is not None:
        return span((job.ended_at or now) - job.accepted_at)
    if job.phase is Phase.RUNNING and job.started_at is not None:
        begun, deadline = job.started_at, job.deadlines.run
    else:
        begun, deadline = job.accepted_at, job.deadlines.capacity
    return f"{span(now - begun)} of {span(deadline - begun)}" if deadline else span(now - begun)


def state(job: Job) -> str:
    """Say where a job stands: its phase until it has an outcome, then that and why."""
    if job.outcome is None:
        return job.phase.value
    return f"{job.outcome} ({job.reason})" if job.reason else job.outcome.value


class _Drawn:
    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, records: Sequence[RunRecord], now: datetime) -> None:
        parts = [part for record in records for part in self._parts(record, now)]
        if parts:
            self._live.update(Group(*parts), refresh=True)

    @staticmethod
    def _parts(record: RunRecord, now: datetime) -> Iterator[RenderableType]:
        rows = [
            (job.family, state(job), str(placements(job)), landed(job), elapsed(job, now))
            for job in record.latest
        ]
        yield Text(f"{record.run.run_id}  {record.run.status}")
        yield table(("FAMILY", "STATE", "PLACEMENTS", "LANDED", "ELAPSED"), rows, numbers=["PLACEMENTS"])


class _Lines:
    def __init__(self, *, several: bool) -> None:
        self._several = several
        self._shown: dict[str, tuple[object, ...]] = {}
        self._landed: dict[str, tuple[str, datetime]] = {}

    def show(self, records: Sequence[RunRecord], now: datetime) -> None:
        for record in records:
            for job in record.latest:
                self._show(job, now)

    def _show(self, job: Job, now: datetime) -> None:
        stage = (state(job), placements(job))
        before, since = self._landed.get(job.job_key, ("", now))
        if stage == self._shown.get(job.job_key) and (landed(job) == before or now - since < _BETWEEN_CELLS):
            return
        self._shown[job.job_key] = stage
        self._landed[job.job_key] = (landed(job), now)
        name = f"{job.run_id} {job.family}" if self._several else job.family
        words = (state(job), f"placement {placements(job)}", landed(job), elapsed(job, now))
        note(f"{moment(now)} {name}: {', '.join(filter(None, words))}")

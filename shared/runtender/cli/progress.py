"""How far a run is, on standard error: a table that is drawn again on a terminal, a line per change elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Protocol

from runtender.cli.job_words import elapsed, landed, placements, state
from runtender.cli.output import note
from runtender.cli.text import moment
from runtender.client.records import RunRecord
from runtender.model import Job

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
    from runtender.cli.live import drawn_progress  # noqa: PLC0415 - rich, which only a terminal needs

    with drawn_progress() as display:
        yield display


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

"""The progress of runs on a terminal: a table that is drawn again at each change."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from rich.console import Group, RenderableType
from rich.live import Live

from runtender.cli.drawing import console_for, draw
from runtender.cli.job_words import elapsed, landed, placements, state
from runtender.cli.parts import Words, table
from runtender.client.records import RunRecord


@contextmanager
def drawn_progress() -> Iterator[DrawnProgress]:
    """Lend a display on standard error, a terminal; what it has drawn is gone afterwards."""
    console = console_for(sys.stderr)
    with Live(
        console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as live:
        yield DrawnProgress(live)


class DrawnProgress:
    """Shows runs as last seen, each above its jobs."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, records: Sequence[RunRecord], now: datetime) -> None:
        """Draw the runs in the place of what was drawn before."""
        parts = [part for record in records for part in self._parts(record, now)]
        if parts:
            self._live.update(Group(*parts), refresh=True)

    @staticmethod
    def _parts(record: RunRecord, now: datetime) -> Iterator[RenderableType]:
        rows = [
            (job.family, state(job), str(placements(job)), landed(job), elapsed(job, now))
            for job in record.latest
        ]
        yield draw(Words(text=f"{record.run.run_id}  {record.run.status}"))
        yield draw(
            table(("FAMILY", "STATE", "PLACEMENTS", "LANDED", "ELAPSED"), rows, numbers=["PLACEMENTS"])
        )

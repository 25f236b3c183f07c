"""The budget of creates: so many per minute over the whole plane, because the project's API quota is shared with others.

A minute has ten counters, so that no document is written more often than the store likes; each has a tenth of the budget. A
job draws from its own counter before each create and comes again at the next minute when that is used up; nothing else is
charged to it. Jobs that wait come again in the order in which they were accepted, and a newcomer stands behind them where
they alone could use a minute up.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from runtender.engine.plane import Plane
from runtender.model import Job
from runtender.ports import Increment
from runtender.wire.documents import SCHEMA

COUNTERS = 10

# Long enough to look at after an incident; the database's TTL policy removes them then.
_EXPIRY = timedelta(days=7)
# Turns are given within this, the oldest job first, just before the minute in which they are taken.
_TURNS = timedelta(seconds=0.9)
_LEAD = timedelta(seconds=1)
# Jobs that have waited longer are all the oldest.
_LONGEST_AGE = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Counter:
    """One counter of one minute, and how much of the budget it has."""

    minute: int
    number: int
    share: int

    @property
    def path(self) -> str:
        return f"budget/{self.minute}-{self.number}"


class Budget:
    """Draws creates. One instance per process: it remembers which counters it has found used up."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._used_up: set[str] = set()

    def draw(self, job: Job) -> datetime | None:
        """Draw one create; None when it was there, else the moment to come again. Raises `Retryable`."""
        now = self._plane.clock.now()
        counter = self._counter(job, now)
        if self._stands_behind(job, counter):
            self._count(counter, "waiting")
            return self._turn(job, counter)
        if counter.path not in self._used_up and self._count(counter, "n") <= counter.share:
            return None
        self._note_used_up(counter)
        return self._turn(job, counter)

    def _counter(self, job: Job, now: datetime, minutes_before: int = 0) -> _Counter:
        budget = self._plane.settings.api_budget
        number = int(hashlib.sha256(job.job_key.encode()).hexdigest(), 16) % min(COUNTERS, budget)
        share = budget // COUNTERS + (number < budget % COUNTERS)
        minute = int(now.timestamp() / self._plane.settings.timing.tick.total_seconds()) - minutes_before
        return _Counter(minute=minute, number=number, share=share)

    def _stands_behind(self, job: Job, counter: _Counter) -> bool:
        """True for a newcomer when the jobs that wait since the last minute can use this one up."""
        if job.walk.queued or job.resources:
            return False
        before = self._plane.store.get(f"budget/{counter.minute - 1}-{counter.number}")
        if before is None:
            return False
        waiting = max(0, before.data.get("n", 0) - counter.share) + before.data.get("waiting", 0)
        return bool(waiting >= counter.share)

    def _count(self, counter: _Counter, field: str) -> int:
        expiry = self._plane.clock.now() + _EXPIRY
        (sums,) = self._plane.store.commit(
            [
                Increment(
                    path=counter.path, amounts={field: 1}, fields={"schema": SCHEMA, "expires_at": expiry}
                )
            ]
        )
        return int(sums[field])

    def _note_used_up(self, counter: _Counter) -> None:
        # Those of minutes that have passed are never asked for again.
        self._used_up = {path for path in self._used_up if path.startswith(f"budget/{counter.minute}-")}
        self._used_up.add(counter.path)

    def _turn(self, job: Job, counter: _Counter) -> datetime:
        """Return the job's moment among those who wait for the next minute."""
        scale = self._plane.settings.time_scale
        minute = self._plane.settings.timing.tick
        begins = datetime.fromtimestamp((counter.minute + 1) * minute.total_seconds(), UTC)
        age = min(max(begins - job.accepted_at, timedelta()), _LONGEST_AGE)
        return begins - (_LEAD - _TURNS * (1 - age / _LONGEST_AGE)) / scale

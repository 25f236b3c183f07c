"""The budget of creates: so many per minute over the whole plane, because the project's API quota is shared with others.

A minute has ten counters, so that no document is written more often than the store likes; each has a tenth of the budget. A
job draws from its own counter before each create. Where that is used up it draws from the next minute's, and so on: the
first that has something left is the job's turn, and it comes again then. So nobody overtakes those who wait, nobody is
woken in vain, and nothing else is charged to anybody.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from runtender.decide import Turn
from runtender.engine.plane import Plane
from runtender.model import Job
from runtender.ports import Increment
from runtender.wire.documents import SCHEMA

COUNTERS = 10

# Long enough to look at after an incident; the database's TTL policy removes them then.
_EXPIRY = timedelta(days=7)
# A queue longer than this is drawn for again at its end: few jobs wait as long for capacity.
_MOST_MINUTES = 60
_NO_MINUTE = 0
# The jobs of a minute are woken just before it begins, the oldest first, so that its first tick finds them all.
_LEAD = timedelta(seconds=1)
_SPREAD = timedelta(seconds=0.9)
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

    def draw(self, job: Job) -> Turn | None:
        """Draw one create; None when it may be sent now, else the job's turn. Raises `Retryable`."""
        now = self._minute(self._plane.clock.now())
        given = job.walk.turn
        if given is not None and given >= now:
            return None if given == now else self._turn(job, given)
        self._forget_before(now)
        for minute in range(now, now + _MOST_MINUTES):
            if self._has_room(self._counter(job, minute)):
                return None if minute == now else self._turn(job, minute)
        # A turn that has passed is none: the job draws anew.
        return replace(self._turn(job, now + _MOST_MINUTES), minute=_NO_MINUTE)

    def _minute(self, moment: datetime) -> int:
        return int(moment.timestamp() / self._length_s)

    @property
    def _length_s(self) -> float:
        return self._plane.settings.timing.tick.total_seconds()

    def _counter(self, job: Job, minute: int) -> _Counter:
        budget = self._plane.settings.api_budget
        number = int(hashlib.sha256(job.job_key.encode()).hexdigest(), 16) % min(COUNTERS, budget)
        share = budget // COUNTERS + (number < budget % COUNTERS)
        return _Counter(minute=minute, number=number, share=share)

    def _has_room(self, counter: _Counter) -> bool:
        if counter.path in self._used_up:
            return False
        expiry = self._plane.clock.now() + _EXPIRY
        fields = {"schema": SCHEMA, "expires_at": expiry}
        (sums,) = self._plane.store.commit([Increment(path=counter.path, amounts={"n": 1}, fields=fields)])
        if sums["n"] <= counter.share:
            return True
        self._used_up.add(counter.path)
        return False

    def _forget_before(self, minute: int) -> None:
        self._used_up = {path for path in self._used_up if path >= f"budget/{minute}-"}

    def _turn(self, job: Job, minute: int) -> Turn:
        """Return the job's moment among those whose turn is in that minute."""
        begins = datetime.fromtimestamp(minute * self._length_s, UTC)
        age = min(max(begins - job.accepted_at, timedelta()), _LONGEST_AGE)
        before = _LEAD - _SPREAD * (1 - age / _LONGEST_AGE)
        return Turn(minute=minute, at=begins - before / self._plane.settings.time_scale)

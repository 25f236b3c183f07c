"""Lets waiting jobs begin, as many as the limits allow, in one batch that only one invocation at a time can write.

Who is alive and who waits is read from the jobs themselves, so there is no count that could go wrong. The guard document is
read before them and written with the choice: of two that choose at once, the second has to choose again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from runtender.capacity.admission import Choice, choose, is_full
from runtender.decide.admission import admit
from runtender.engine.plane import Plane
from runtender.errors import Conflict
from runtender.model import Admission, Job
from runtender.ports import Create, Snapshot, Update, Write
from runtender.wire.documents import SCHEMA, job_from_document, job_update

# A batch's writes are bounded; who is not in this one is in the next.
_MOST_AT_ONCE = 50
# The queue is read as far as this: who stands behind so many is not let in before some of them.
_MOST_WAITING = 500
_HEAD = 25
_MOST_LIVE = 5000
_MOST_TRIES = 5
_FIRST_PAUSE_S = 0.05


class Admissions:
    """Chooses among all jobs of the plane."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def admit(self) -> tuple[str, ...]:
        """Let in whom the limits have room for; return their job keys. Raises `Retryable`.

        Where others choose at the same time again and again, nobody is let in here: the next tick looks once more.
        """
        if not self._plane.settings.live_limits:
            return ()
        for attempt in range(_MOST_TRIES):
            try:
                return self._admit_once()
            except Conflict:
                self._plane.clock.sleep(_FIRST_PAUSE_S * 2**attempt * (0.5 + self._plane.clock.jitter()))
        return ()

    def _admit_once(self) -> tuple[str, ...]:
        store, limits = self._plane.store, self._plane.settings.live_limits
        guard = store.get(self._guard_path)
        found = store.find("jobs", where={"admission": Admission.LIVE.value}, limit=_MOST_LIVE)
        live = [job_from_document(one.data) for one in found]
        if is_full(limits, live):
            return ()
        chosen, snapshots = self._choose(live)
        if not chosen:
            return ()
        now, token = self._plane.clock.now(), self._plane.clock.token()
        writes: list[Write] = [self._guard(guard, token)]
        for job in chosen:
            let_in = replace(admit(job, now), version=job.version + 1, token=token)
            writes += job_update(let_in, snapshots[job.job_key], now, was=job)
        store.commit(writes)
        return tuple(job.job_key for job in chosen)

    def _choose(self, live: list[Job]) -> tuple[tuple[Job, ...], Mapping[str, Snapshot]]:
        """Choose from the head of the queue, and from further behind only where that may let somebody in."""
        snapshots: dict[str, Snapshot] = {}
        choice = Choice(jobs=(), closed=False)
        for depth in (_HEAD, _MOST_WAITING):
            queue = self._plane.store.find("jobs", order_by="queue_at", limit=depth)
            snapshots = {found.data["job_key"]: found for found in queue}
            waiting = (job_from_document(found.data) for found in queue)
            choice = choose(self._plane.settings.live_limits, live, waiting)
            if choice.closed or len(queue) < depth:
                break
        return choice.jobs[:_MOST_AT_ONCE], snapshots

    @property
    def _guard_path(self) -> str:
        return f"admission/{self._plane.settings.plane_id}"

    def _guard(self, standing: Snapshot | None, token: str) -> Write:
        fields = {"schema": SCHEMA, "token": token}
        if standing is None:
            return Create(path=self._guard_path, data=fields)
        return Update(path=self._guard_path, fields=fields, stamp=standing.stamp)

"""Saving a job: one batch with its run header, fenced by version and write token.

A decision that loses its compare-and-set is dropped. An answer of the world (a create that was taken, a cancel that was
asked for) is never dropped: it is merged into whatever the job has become.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from runtender.decide import with_job
from runtender.engine.plane import Plane
from runtender.errors import Conflict, Retryable
from runtender.model import Job, Run
from runtender.ports import Snapshot, Update
from runtender.wire.documents import (
    job_from_document,
    job_path,
    job_update,
    run_from_document,
    run_path,
    run_update,
)

# Ten handlers at once on one job is far beyond what one job's events can bring; then redelivery takes over.
_MOST_TRIES = 10
_FIRST_PAUSE_S = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """A job with the snapshot it was read from, and the run header where it had to be read."""

    job: Job
    snapshot: Snapshot
    run: Run | None = None


class Saver:
    """Reads and saves jobs. `now` is taken from the plane's clock at each save."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def load(self, job_key: str) -> Loaded | None:
        """Read a job; None when there is none."""
        snapshot = self._plane.store.get(job_path(job_key))
        return None if snapshot is None else Loaded(job=job_from_document(snapshot.data), snapshot=snapshot)

    def save(self, before: Loaded, after: Job) -> Loaded:
        """Save a decision, with its header entry if that changed; raises `Conflict` when somebody else was faster."""
        after = replace(after, version=before.job.version + 1, token=self._plane.clock.token())
        for attempt in range(_MOST_TRIES):
            try:
                return self._commit(before, after)
            except Conflict:
                standing = self.load(after.job_key)
                if standing is not None and standing.job.token == after.token:
                    # The client repeated a commit that had gone through: the "other" winner is us.
                    return standing
                if standing is None or standing.snapshot.stamp != before.snapshot.stamp:
                    raise
                # Only the header changed under us, by another family's job.
                self._pause(attempt)
        raise Retryable(f"the header of run {after.run_id!r} is written too often")

    def record(self, before: Loaded, change: Callable[[Job], Job]) -> Loaded:
        """Merge an answer of the world into the job as it stands, however often it moves meanwhile."""
        loaded = before
        for attempt in range(_MOST_TRIES):
            after = change(loaded.job)
            if after == loaded.job:
                return loaded
            try:
                return self.save(loaded, after)
            except Conflict:
                self._pause(attempt)
                standing = self.load(before.job.job_key)
                if standing is None:
                    raise
                loaded = standing
        raise Retryable(f"job {before.job.job_key!r} is written too often")

    def mark_notified(self, run: Run) -> None:
        """Note that the run's end was announced; somebody else's newer header is left alone."""
        snapshot = self._plane.store.get(run_path(run.run_id))
        if snapshot is None or snapshot.data.get("notified_at") is not None:
            return
        fields = {"notified_at": self._plane.clock.now(), "token": self._plane.clock.token()}
        try:
            self._plane.store.commit([Update(path=snapshot.path, fields=fields, stamp=snapshot.stamp)])
        except Conflict:
            return

    def _commit(self, before: Loaded, after: Job) -> Loaded:
        now = self._plane.clock.now()
        writes = job_update(after, before.snapshot, now)
        run = None
        if _header_view(before.job) != _header_view(after):
            run, update = self._header(after, now)
            writes = [*writes, *([update] if update else [])]
        stamps = self._plane.store.commit(writes)
        at = next(i for i, write in enumerate(writes) if write.path == before.snapshot.path)
        snapshot = _written(before.snapshot, writes[at], stamps[at])
        return Loaded(job=job_from_document(snapshot.data), snapshot=snapshot, run=run)

    def _header(self, job: Job, now: datetime) -> tuple[Run | None, Update | None]:
        snapshot = self._plane.store.get(run_path(job.run_id))
        if snapshot is None:
            return None, None
        run = run_from_document(snapshot.data)
        moved = with_job(run, job, now)
        if moved == run:
            return run, None
        moved = replace(moved, version=run.version + 1, token=job.token)
        return moved, run_update(moved, snapshot)

    def _pause(self, attempt: int) -> None:
        self._plane.clock.sleep(_FIRST_PAUSE_S * 2**attempt * (0.5 + self._plane.clock.jitter()))


def _header_view(job: Job) -> tuple[object, ...]:
    return (job.phase, job.outcome, job.reason, job.cleanup.state)


def _written(before: Snapshot, write: object, stamp: object) -> Snapshot:
    """The document as it now stands, without reading it again."""
    assert isinstance(write, Update)  # noqa: S101  # a job is only ever updated here
    data = {key: value for key, value in before.data.items() if key not in write.remove}
    return Snapshot(path=before.path, data={**data, **write.fields}, stamp=stamp)

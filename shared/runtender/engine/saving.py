"""Saving a job: one batch with its run header, fenced by version and write token.

A decision that loses its compare-and-set is dropped. An answer of the world (a create that was taken, a cancel that was
asked for) is never dropped: it is merged into whatever the job has become.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from runtender.decide import with_job
from runtender.engine.announce import announce, is_to_be_announced
from runtender.engine.plane import Plane
from runtender.engine.telemetry import with_telemetry
from runtender.errors import Conflict, Retryable
from runtender.model import Job, Phase, Run
from runtender.ports import Snapshot, Update, Write
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
    """A job with the snapshot it was read from."""

    job: Job
    snapshot: Snapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """A run header with the snapshot it stands in."""

    run: Run
    snapshot: Snapshot


class Saver:
    """Reads and saves jobs, for one invocation. `header` is the run header as its last save left it, if it wrote one."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self.header: Header | None = None

    def load(self, job_key: str) -> Loaded | None:
        """Read a job; None when there is none."""
        snapshot = self._plane.store.get(job_path(job_key))
        return None if snapshot is None else Loaded(job=job_from_document(snapshot.data), snapshot=snapshot)

    def save(self, before: Loaded, after: Job) -> Loaded:
        """Save a decision, with its header entry if that changed; raises `Conflict` when somebody else was faster."""
        after = with_telemetry(before.job, after, self._plane)
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

    def mark_notified(self, header: Header) -> None:
        """Note that the run's end was announced. Where the header moved meanwhile, it is announced once more later."""
        run = replace(
            header.run,
            notified_at=self._plane.clock.now(),
            version=header.run.version + 1,
            token=self._plane.clock.token(),
        )
        try:
            self._plane.store.commit([run_update(run, header.snapshot)])
        except Conflict:
            return

    def _commit(self, before: Loaded, after: Job) -> Loaded:
        writes = job_update(after, before.snapshot, self._plane.clock.now(), was=before.job)
        spilled = len(writes) > 1
        standing = self._moved_header(after) if _header_view(before.job) != _header_view(after) else None
        if standing is not None:
            standing = self._announced_at_last(standing, after)
            writes = [*writes, run_update(standing.run, standing.snapshot)]
        stamps = self._plane.store.commit(writes)
        written = {write.path: (write, stamp) for write, stamp in zip(writes, stamps, strict=True)}
        snapshot = _written(before.snapshot, *written[before.snapshot.path])
        self.header = None
        if standing is not None:
            left = _written(standing.snapshot, *written[standing.snapshot.path])
            self.header = Header(run=standing.run, snapshot=left)
        # What was written is what will be read, but for rows that went to a block of their own.
        return Loaded(job=job_from_document(snapshot.data) if spilled else after, snapshot=snapshot)

    def _announced_at_last(self, standing: Header, job: Job) -> Header:
        """Announce a settled run before the save that may be its last: nobody comes back to it after that."""
        if job.phase is not Phase.DONE or not is_to_be_announced(standing.run):
            return standing
        announce(self._plane, standing.run)
        return replace(standing, run=replace(standing.run, notified_at=self._plane.clock.now()))

    def _moved_header(self, job: Job) -> Header | None:
        """Return the header to be written beside the job; None where it has nothing new to say."""
        snapshot = self._plane.store.get(run_path(job.run_id))
        if snapshot is None:
            return None
        run = run_from_document(snapshot.data)
        moved = with_job(run, job, self._plane.clock.now())
        if moved == run:
            return None
        return Header(run=replace(moved, version=run.version + 1, token=job.token), snapshot=snapshot)

    def _pause(self, attempt: int) -> None:
        self._plane.clock.sleep(_FIRST_PAUSE_S * 2**attempt * (0.5 + self._plane.clock.jitter()))


def _header_view(job: Job) -> tuple[object, ...]:
    return (job.phase, job.outcome, job.reason, job.cleanup.state)


def _written(before: Snapshot, write: Write, stamp: object) -> Snapshot:
    """Return the document as it now stands, without reading it again."""
    assert isinstance(write, Update)  # noqa: S101  # jobs and headers are only ever updated here
    data = {key: value for key, value in before.data.items() if key not in write.remove}
    return Snapshot(path=before.path, data={**data, **write.fields}, stamp=stamp)

"""What really happened, from objects, Jobs and pods alone: how a job has to end once all who may speak have spoken.

This is the specification of endings written a second time, apart from `decide`, for the simulation to compare with.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from runtender.model import Job, Marker, MarkerStatus, Outcome, Reason, SubmitKind, Writer

_BY_PLANE = {
    Reason.CANCELLED: Outcome.CANCELLED,
    Reason.RUN_TIMEOUT: Outcome.TIMED_OUT,
    Reason.TTL_EXPIRED: Outcome.TIMED_OUT,
    Reason.UNSCHEDULABLE: Outcome.NO_CAPACITY,
    Reason.QUOTA_BLOCKED: Outcome.NO_CAPACITY,
}
_DEADLINE = "DeadlineExceeded"

Right = Collection[Outcome]
"""The outcomes that are right; none where what happened is no reason to end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """The first terminal object of a nonce: when it was stored, and what it says (None: nothing that can be read)."""

    stored_at: datetime
    marker: Marker | None

    @property
    def disarms(self) -> bool:
        """True when it only forbids a late worker to start."""
        marker = self.marker
        return marker is not None and marker.writer is Writer.PLANE and marker.reason is None

    @property
    def settles(self) -> bool:
        """True when it decides how the job ends."""
        return self.marker is not None and not self.disarms


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """How a Job came to its end: why it failed ("" where it did not), and which of its indexes count as done.

    `overdue`: a pod of its own ran longer than a pod may.
    """

    failed_because: str
    done: frozenset[int]
    overdue: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Cells:
    """What workers say that they have achieved together. `complete`: all of them have said so, and to the end."""

    n_cells: int
    n_ok: int
    n_error: int
    complete: bool


def sum_of(summaries: Mapping[int, bytes], workers: int) -> Cells | None:
    """Sum the workers' summaries by rank; None where there is none."""
    told = [json.loads(body) for body in summaries.values()]
    if not told:
        return None
    counts = {name: sum(one[name] for one in told) for name in ("n_cells", "n_ok", "n_error")}
    return Cells(**counts, complete=len(told) == workers and all(one["complete"] for one in told))


def right_by_word(job: Job, word: Word, cells: Cells | None) -> Right:
    """Return the outcome that a settling word stands for."""
    marker = word.marker
    assert marker is not None  # noqa: S101 - asked for settling words only
    if marker.writer is Writer.PLANE:
        if marker.reason is Reason.SETTLED_BY_SUMMARY:
            return {_by_cells(cells)} if cells and cells.complete else ()
        return {_BY_PLANE.get(marker.reason, Outcome.FAILED) if marker.reason else Outcome.FAILED}
    match marker.status:
        case MarkerStatus.SUCCEEDED:
            return {_by_cells(cells) if job.plan.kind is SubmitKind.FORECAST else Outcome.SUCCEEDED}
        case MarkerStatus.INTERRUPTED if job.cancel_requested:
            return {Outcome.CANCELLED}
        case MarkerStatus.INTERRUPTED if job.deadlines.run and word.stored_at >= job.deadlines.run:
            return {Outcome.TIMED_OUT}
        case _:
            return {Outcome.FAILED}


def right_by_verdict(job: Job, verdict: Verdict, worked: Collection[int], cells: Cells | None) -> Right:
    """Return the outcome that a Job's own end stands for. `worked` are the indexes whose work came to a good end."""
    if verdict.done - set(worked):
        # What nobody has done counts as done: such a Job proves nothing.
        return ()
    forecast = job.plan.kind is SubmitKind.FORECAST
    if not verdict.failed_because:
        return {_by_cells(cells) if forecast else Outcome.SUCCEEDED}
    if verdict.failed_because == _DEADLINE:
        return {Outcome.TIMED_OUT}
    if verdict.done:
        return {Outcome.PARTIAL if forecast and (cells is None or cells.n_ok) else Outcome.FAILED}
    # Whether a pod was overdue, only those know who could list the pods.
    return {Outcome.FAILED, Outcome.TIMED_OUT} if verdict.overdue else {Outcome.FAILED}


def _by_cells(cells: Cells | None) -> Outcome:
    if cells is None or cells.n_error == 0:
        return Outcome.SUCCEEDED
    return Outcome.PARTIAL if cells.n_error < cells.n_cells else Outcome.FAILED

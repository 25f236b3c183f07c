"""What really happened, from the objects alone: how a job has to end once its workers' and the plane's words are known.

This is the specification of endings written a second time, apart from `decide`, for the simulation to compare with.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runtender.model import Job, Marker, MarkerStatus, Outcome, Reason, SubmitKind, Writer

_BY_PLANE = {
    Reason.CANCELLED: Outcome.CANCELLED,
    Reason.RUN_TIMEOUT: Outcome.TIMED_OUT,
    Reason.TTL_EXPIRED: Outcome.TIMED_OUT,
}


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


def outcome_of(job: Job, word: Word, summary: bytes | None) -> Outcome:
    """Return the outcome that a settling word stands for."""
    marker = word.marker
    assert marker is not None  # noqa: S101 - asked for settling words only
    if marker.writer is Writer.PLANE:
        if marker.reason is Reason.SETTLED_BY_SUMMARY:
            return _by_cells(_read(summary))
        return _BY_PLANE.get(marker.reason, Outcome.FAILED) if marker.reason else Outcome.FAILED
    match marker.status:
        case MarkerStatus.SUCCEEDED:
            return _by_cells(_read(summary)) if job.plan.kind is SubmitKind.FORECAST else Outcome.SUCCEEDED
        case MarkerStatus.INTERRUPTED if job.cancel_requested:
            return Outcome.CANCELLED
        case MarkerStatus.INTERRUPTED if job.deadlines.run and word.stored_at >= job.deadlines.run:
            return Outcome.TIMED_OUT
        case _:
            return Outcome.FAILED


def _by_cells(summary: dict[str, Any] | None) -> Outcome:
    if summary is None or summary["n_error"] == 0:
        return Outcome.SUCCEEDED
    return Outcome.PARTIAL if summary["n_error"] < summary["n_cells"] else Outcome.FAILED


def _read(summary: bytes | None) -> dict[str, Any] | None:
    return json.loads(summary) if summary else None

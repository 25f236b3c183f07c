"""What goes into a decision and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from runtender.model import (
    HistoryRow,
    Job,
    Phase,
    Reason,
    Resource,
    ResourceKind,
    ResourceState,
    Timing,
)
from runtender.observed import Absent, Present, Seen, Sight


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """When a job may send its create: in the minute of that number, for which it is to be woken `at`."""

    minute: int
    at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """The circumstances of one step: the moment, who asks (`token`), of which plane, chance in [0, 1).

    `thorough` is false when only an event's own subject need be read; a due job or a suspicious fleet list makes it true.
    `limited`: the plane has limits on what may be alive, and a new job waits to be let in.
    `turn` is set when no create may be sent now: when the job has its turn.
    """

    now: datetime
    token: str
    plane: str
    jitter: float = 0.0
    timing: Timing = Timing()
    thorough: bool = True
    limited: bool = False
    turn: Turn | None = None

    def is_held(self, row: Resource) -> bool:
        """True while some invocation holds the row: no other may make the next call on it."""
        return row.until is not None and row.until > self.now

    def owns(self, sight: Present, job: Job) -> bool:
        """True when what was seen is this plane's and this job's, whichever placement made it."""
        return sight.plane == self.plane and sight.key == job.key

    def made(self, sight: Present, job: Job, row: Resource) -> bool:
        """True when what was seen came of this very row's create."""
        return sight.nonce == row.nonce and self.owns(sight, job)


class LookKind(StrEnum):
    """What can be looked at: of one resource row, or of the job (no nonce)."""

    MARKERS = "markers"
    OPERATION = "operation"
    SIGHT = "sight"
    REMAINS = "remains"
    FATE = "fate"
    SERIAL = "serial"
    SUMMARY = "summary"
    PODS = "pods"
    CELLS = "cells"
    PREDECESSOR = "predecessor"
    QUOTA = "quota"
    SHORTAGES = "shortages"


@dataclass(frozen=True, slots=True)
class Look:
    """A wish to see something before deciding."""

    kind: LookKind
    nonce: str


@dataclass(frozen=True, slots=True)
class SendCreate:
    """Send the row's create, now that the row is saved."""

    nonce: str


@dataclass(frozen=True, slots=True)
class SendDelete:
    """Remove the row's resource."""

    nonce: str


@dataclass(frozen=True, slots=True)
class SendDeleteRemains:
    """Remove what the row covers besides its resource."""

    nonce: str


@dataclass(frozen=True, slots=True)
class KeepLogs:
    """Keep the last words of the row's workers, which go with its resource. That it fails changes nothing."""

    nonce: str


Effect = SendCreate | SendDelete | SendDeleteRemains | KeepLogs


@dataclass(frozen=True, kw_only=True, slots=True)
class Tombstone:
    """A terminal marker to be written by the plane before anything is saved.

    `words` is the worker's own marker where it was found elsewhere (serial console): it is stored for the worker.
    `reason` None disarms a placement without ending the job.
    """

    nonce: str
    reason: Reason | None
    detail: str
    words: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """The job as it should be saved, what to do once it is, or the tombstones to write before deciding again.

    `more` says that there is something to do at once after the save and the effects; `open_operation` that it is worth
    waiting within this very event for the operation to end.
    """

    job: Job
    effects: tuple[Effect, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    more: bool = False
    open_operation: bool = False


def moved(job: Job, ctx: Context, cause: str, *, note: str = "", **changes: Any) -> Job:
    """Return the job with `changes`, and a history row if its phase or outcome changed."""
    after = replace(job, **changes)
    if (after.phase, after.outcome) == (job.phase, job.outcome):
        return after
    row = HistoryRow(at=ctx.now, phase=after.phase, outcome=after.outcome, cause=cause, detail=note)
    return replace(after, history=(*after.history, row))


def current(job: Job) -> Resource | None:
    """Return the row of the placement at hand: the only one that may be alive."""
    live = job.live
    return live[-1] if live else None


def waits_for_predecessor(job: Job) -> bool:
    """True for an attempt that has placed nothing yet and is not the first: the one before it goes first, wholly."""
    return job.attempt > 1 and not job.resources


def may_have_worker(row: Resource) -> bool:
    """True unless the create was definitely refused, so that no worker of this nonce can ever write a marker."""
    return not row.refused


def is_set(row: Resource) -> bool:
    """True for a row whose resource has many workers, and a status of its own over them."""
    return row.kind is ResourceKind.JOB


def sight_of(row: Resource, seen: Seen) -> Sight | None:
    """Return what was seen of the row's own resource: another of the same name means that it is not there."""
    sight = seen.sights.get(row.nonce)
    if not isinstance(sight, Present):
        return sight
    known = row.uid or row.target_id
    own = sight.nonce == row.nonce if known is None else sight.uid == known
    return sight if own else Absent()


def is_settled(job: Job) -> bool:
    """True once the outcome is decided."""
    return job.outcome is not None


def is_at_rest(job: Job) -> bool:
    """True when nothing more will ever happen to the job."""
    return job.phase is Phase.DONE


def abandoned(row: Resource) -> bool:
    """True for a placement that is being torn down."""
    return row.state is ResourceState.DELETING


__all__ = [
    "Context", "Decision", "Effect", "KeepLogs", "Look", "LookKind", "SendCreate", "SendDelete", "SendDeleteRemains",
    "Tombstone", "Turn", "abandoned", "current", "is_at_rest", "is_set", "is_settled", "may_have_worker", "moved", "sight_of",
    "waits_for_predecessor",
]  # fmt: skip

"""Why a job should end although no terminal marker says so: cancel, deadlines, stall, a lost worker.

Each ending is a wish. It becomes the outcome only through the terminal object, which the plane then tries to create
itself: if the worker was faster, the worker's word stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from runtender.decide.decision import Context, is_set, sight_of
from runtender.model import Job, Marker, MarkerStatus, Outcome, Reason, Resource, SubmitKind, Writer
from runtender.observed import Absent, LiveState, MarkerPair, Present, Seen, Sight

# What the plane's own marker means. Its reason is the whole message.
OUTCOME_BY_REASON: Mapping[Reason, Outcome] = {
    Reason.CANCELLED: Outcome.CANCELLED,
    Reason.RUN_TIMEOUT: Outcome.TIMED_OUT,
    Reason.TTL_EXPIRED: Outcome.TIMED_OUT,
    Reason.CAPACITY_TIMEOUT: Outcome.NO_CAPACITY,
    Reason.CAPACITY_EXHAUSTED: Outcome.NO_CAPACITY,
    Reason.QUOTA_BLOCKED: Outcome.NO_CAPACITY,
    Reason.UNSCHEDULABLE: Outcome.NO_CAPACITY,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """A wish to end a job, and the worker's own last words where they were found outside the terminal object."""

    reason: Reason
    detail: str = ""
    words: bytes | None = None

    @property
    def outcome(self) -> Outcome:
        """The outcome this ending stands for."""
        return OUTCOME_BY_REASON.get(self.reason, Outcome.FAILED)


def wish_to_end(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> Ending | None:
    """Return why the job should end now, or None."""
    ending = _cancel(job)
    if not given_up(pair):
        ending = (
            ending
            or _overdue(job, pair, ctx.now)
            or stalled(job, row, seen, ctx)
            or _lost(job, row, seen, ctx)
        )
    if ending is None or _unheard(job, row, ending.reason, seen, ctx):
        return None
    if ending.reason in {Reason.STALLED, Reason.RUN_TIMEOUT} and job.plan.kind is SubmitKind.FORECAST:
        if ending.reason is Reason.STALLED and row.nonce not in seen.summaries:
            return None
        if _has_delivered(row, seen):
            ending = Ending(
                reason=Reason.SETTLED_BY_SUMMARY, detail="the worker fell silent after its complete summary"
            )
    words = seen.serials.get(row.nonce)
    return Ending(reason=ending.reason, detail=ending.detail, words=words) if words else ending


def _cancel(job: Job) -> Ending | None:
    if not job.cancel_requested:
        return None
    return Ending(reason=Reason.CANCELLED, detail="cancelled on request")


def is_overdue(job: Job, pair: MarkerPair, now: datetime) -> bool:
    """True when the boot or run deadline has passed and the marker that would lift it is not there."""
    return _overdue(job, pair, now) is not None


def _overdue(job: Job, pair: MarkerPair, now: datetime) -> Ending | None:
    run, boot = job.deadlines.run, job.deadlines.boot
    if run is not None and now >= run:
        return Ending(
            reason=Reason.RUN_TIMEOUT, detail=f"ran longer than its limit of {_words(job.plan.run_limit)}"
        )
    if run is None and boot is not None and now >= boot and pair.started is None:
        return Ending(
            reason=Reason.BOOT_TIMEOUT, detail="the worker gave no sign of life within the boot limit"
        )
    return None


def _unheard(job: Job, row: Resource, reason: Reason, seen: Seen, ctx: Context) -> bool:
    """True while what could speak against a deadline's end cannot be read.

    That is no proof of silence, but it cannot keep a job for ever either.
    """
    words: tuple[Mapping[str, object], ...]
    if reason is Reason.BOOT_TIMEOUT:
        deadline, words = job.deadlines.boot, (seen.sights, seen.pods) if is_set(row) else (seen.serials,)
    elif reason is Reason.RUN_TIMEOUT and is_set(row):
        deadline, words = job.deadlines.run, (seen.sights,)
    else:
        return False
    unread = any(row.nonce not in read for read in words)
    return unread and deadline is not None and ctx.now < deadline + ctx.timing.fence_margin


def _has_delivered(row: Resource, seen: Seen) -> bool:
    summary = seen.summaries.get(row.nonce)
    return summary is not None and summary.complete


def stalled(job: Job, row: Resource, seen: Seen, ctx: Context) -> Ending | None:
    """No new cell for the grace although the worker is there. An unread list or an unseen worker is no stall."""
    grace, sight = ctx.timing.stall_grace, sight_of(row, seen)
    if seen.cells is None or job.started_at is None or not grace or job.plan.kind is not SubmitKind.FORECAST:
        return None
    if not isinstance(sight, Present) or sight.state is not LiveState.RUNNING:
        return None
    since = max(job.started_at, seen.cells.last_at or job.started_at)
    if ctx.now - since < grace:
        return None
    return Ending(reason=Reason.STALLED, detail=f"no new results for {_words(ctx.now - since)}")


def is_missing(row: Resource, sight: Sight, ctx: Context) -> bool:
    """True when the worker was seen absent or ended twice, at least `lost_confirm` apart."""
    return (
        _not_there(sight)
        and row.missing_since is not None
        and ctx.now - row.missing_since >= ctx.timing.lost_confirm
    )


def _not_there(sight: Sight) -> bool:
    return isinstance(sight, Absent) or sight.state is LiveState.ENDED


def first_missed(row: Resource, sight: Sight, now: datetime) -> datetime | None:
    """Return since when the worker has been going or gone, None when it is there."""
    if isinstance(sight, Present) and sight.state in {LiveState.STARTING, LiveState.RUNNING}:
        return None
    return row.missing_since or now


def stopped_early(row: Resource, pair: MarkerPair, sight: Sight, ctx: Context) -> bool:
    """True when a VM is stopping within a minute of its creation without a word: how a late stock-out looks."""
    spoke = pair.started is not None or (pair.terminal_stored and not is_disarmed(pair))
    if spoke or not isinstance(sight, Present) or is_set(row):
        return False
    if sight.state not in {LiveState.ENDING, LiveState.ENDED}:
        return False
    born = sight.created_at or row.created_at
    return born is not None and min(sight.stopped_at or ctx.now, ctx.now) - born <= ctx.timing.early_stop


def _lost(job: Job, row: Resource, seen: Seen, ctx: Context) -> Ending | None:
    """A worker that is gone for good: settled by its last words, its summary, the platform's records, in that order."""
    sight = sight_of(row, seen)
    if sight is None or not is_missing(row, sight, ctx):
        return None
    if seen.serials.get(row.nonce):
        return Ending(reason=Reason.WORKER_LOST, detail="its last words were found on the serial console")
    if job.plan.kind is SubmitKind.FORECAST:
        if row.nonce not in seen.summaries:
            return None
        if _has_delivered(row, seen):
            return Ending(
                reason=Reason.SETTLED_BY_SUMMARY, detail="the worker vanished after its complete summary"
            )
    if is_set(row):
        return Ending(reason=Reason.JOB_DELETED, detail="its Job was deleted, and not by the plane")
    fate = seen.fates.get(row.nonce)
    if fate is None:
        return None
    reason = fate.reason or Reason.WORKER_LOST
    return Ending(
        reason=reason, detail=_LOST_WORDS.get(reason, "the worker vanished without a terminal marker")
    )


_LOST_WORDS: Mapping[Reason, str] = {
    Reason.PREEMPTED: "the platform preempted the worker",
    Reason.HOST_ERROR: "the worker's host failed",
    Reason.TTL_EXPIRED: "the platform's own time limit removed the worker",
}


def summary_decides(job: Job, marker: Marker) -> bool:
    """True when the outcome under this terminal marker depends on the worker's summary."""
    if job.plan.kind is not SubmitKind.FORECAST:
        return False
    if marker.writer is Writer.PLANE:
        return marker.reason is Reason.SETTLED_BY_SUMMARY
    return marker.status is MarkerStatus.SUCCEEDED


def is_disarmed(pair: MarkerPair) -> bool:
    """True when the plane's own marker only forbids a late worker to start."""
    return pair.terminal is not None and pair.terminal.writer is Writer.PLANE and pair.terminal.reason is None


def given_up(pair: MarkerPair) -> bool:
    """True when the plane forbade the worker to start before it had: nothing will come of this placement."""
    return is_disarmed(pair) and pair.started is None


def boot_deadline(job: Job, confirmed_at: datetime, ctx: Context) -> datetime:
    """The boot limit counts from when the machine is there."""
    return confirmed_at + boot_limit(job, ctx)


def boot_limit(job: Job, ctx: Context) -> timedelta:
    """Return how long a worker may take to speak. Drivers take longer: one with a GPU has at least `gpu_boot_minimum`."""
    limit: timedelta = ctx.timing.boot_limit
    return max(limit, ctx.timing.gpu_boot_minimum) if job.plan.hardware == "gpu" else limit


def _words(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"

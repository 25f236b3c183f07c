"""How a job ends: from a terminal marker (and the worker's summary) to outcome, reason and times. Once, for good."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from runtender.decide.decision import Context, Decision, Tombstone, may_have_worker, moved
from runtender.decide.endings import OUTCOME_BY_REASON, Ending, is_disarmed, summary_decides
from runtender.model import (
    Cleanup,
    CleanupState,
    Job,
    Marker,
    MarkerStatus,
    Outcome,
    Phase,
    PhaseTimes,
    Reason,
    Resource,
    ResourceState,
    Summary,
    Writer,
)
from runtender.observed import MarkerPair, Seen


def settle_by_marker(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> Job | None:
    """Settle by the terminal marker; None when there is none that settles, or its summary could not be read yet."""
    marker = pair.terminal
    if marker is None or is_disarmed(pair):
        return None
    summary: Summary | None = None
    if summary_decides(job, marker):
        if row.nonce not in seen.summaries:
            return None
        summary = seen.summaries[row.nonce]
    outcome, reason, detail = _verdict(job, marker, summary)
    cause = f"terminal marker {marker.status} by {marker.writer}"
    settled = settle(job, ctx, outcome=outcome, reason=reason, detail=detail, cause=cause)
    started = pair.started.recorded_at if pair.started else None
    times = phase_times(job, started, marker.recorded_at, execute_s=marker.execute_s)
    return replace(settled, summary=summary or job.summary, phases=times)


def end(job: Job, row: Resource | None, pair: MarkerPair, ending: Ending, ctx: Context) -> Decision:
    """End the job by the plane's own wish, through the terminal object wherever a worker may still write it."""
    if row is not None and may_have_worker(row) and pair.terminal is None:
        tombstone = Tombstone(nonce=row.nonce, reason=ending.reason, detail=ending.detail, words=ending.words)
        return Decision(job=job, tombstones=(tombstone,))
    # No worker of this job can speak (any more): the wish itself decides.
    settled = settle(
        job,
        ctx,
        outcome=ending.outcome,
        reason=ending.reason,
        detail=ending.detail,
        cause=f"plane: {ending.reason}",
    )
    return Decision(job=settled)


def settle(job: Job, ctx: Context, *, outcome: Outcome, reason: Reason, detail: str, cause: str) -> Job:
    """Decide the outcome; what is alive goes into teardown."""
    rows = tuple(
        replace(row, state=ResourceState.DELETING) if row.state is ResourceState.CREATED else row
        for row in job.resources
    )
    return moved(
        job,
        ctx,
        cause,
        note=detail[:200],
        phase=Phase.STOPPING,
        outcome=outcome,
        reason=reason,
        detail=detail,
        resources=rows,
        ended_at=ctx.now,
        cleanup=Cleanup(state=CleanupState.PENDING),
    )


def _verdict(job: Job, marker: Marker, summary: Summary | None) -> tuple[Outcome, Reason, str]:
    if marker.writer is Writer.PLANE:
        return _by_plane(marker, summary)
    match marker.status:
        case MarkerStatus.SUCCEEDED:
            return by_summary(summary, Reason.COMPLETED)
        case MarkerStatus.INTERRUPTED:
            return _interrupted(job, marker)
        case MarkerStatus.FAILED | MarkerStatus.RUNNING:
            detail = marker.detail or f"exit_code={marker.exit_code}"
            return Outcome.FAILED, marker.reason or Reason.EXIT_CODE, detail


def _by_plane(marker: Marker, summary: Summary | None) -> tuple[Outcome, Reason, str]:
    reason = marker.reason or Reason.INTERNAL
    if reason is Reason.SETTLED_BY_SUMMARY and summary is not None:
        outcome, _, detail = by_summary(summary, reason)
        return outcome, reason, detail or marker.detail
    return OUTCOME_BY_REASON.get(reason, Outcome.FAILED), reason, marker.detail


def by_summary(summary: Summary | None, reason: Reason) -> tuple[Outcome, Reason, str]:
    """Exit 0 says that the worker ended, its summary what it achieved (design 4; spec 13: status from cells)."""
    if summary is None or summary.n_error == 0:
        return Outcome.SUCCEEDED, reason, ""
    told = summary.detail.get("first_errors")
    detail = f"{summary.n_error} of {summary.n_cells} cells failed{f'; the first: {told}' if told else ''}"
    if summary.n_error < summary.n_cells:
        return Outcome.PARTIAL, Reason.PARTIAL_CELLS, detail
    return Outcome.FAILED, Reason.PARTIAL_CELLS, detail


def _interrupted(job: Job, marker: Marker) -> tuple[Outcome, Reason, str]:
    detail = marker.detail or f"the worker was interrupted ({marker.signal or 'no signal'})"
    if job.cancel_requested:
        return Outcome.CANCELLED, Reason.CANCELLED, detail
    if job.deadlines.run is not None and marker.recorded_at >= job.deadlines.run:
        return Outcome.TIMED_OUT, Reason.RUN_TIMEOUT, detail
    if marker.preempted or marker.reason is Reason.PREEMPTED:
        return Outcome.FAILED, Reason.PREEMPTED, detail
    return (
        Outcome.FAILED,
        Reason.WORKER_LOST,
        f"{detail} [signal {marker.signal}]" if marker.signal else detail,
    )


def phase_times(
    job: Job, started: datetime | None, end: datetime, *, execute_s: float | None = None
) -> PhaseTimes:
    """Seconds from acceptance to start, from start to end, and over all (spec gce.md 12, whose start is the launch).

    The search for capacity is part of provisioning, as its user waits for it. Moments come from the storage server's
    clock, the guest's clock only measures its own span (`execute_s`). A worker that never started has spent everything on it.
    """
    total = _seconds(job.accepted_at, end)
    if started is None:
        return PhaseTimes(provision_s=total, execute_s=None, total_wall_s=total)
    # Kubernetes tells moments in whole seconds: one may lie before what it followed.
    started = max(started, job.accepted_at)
    execute = execute_s if execute_s is not None else _seconds(started, end)
    return PhaseTimes(
        provision_s=_seconds(job.accepted_at, started), execute_s=round(execute, 1), total_wall_s=total
    )


def _seconds(start: datetime, end: datetime) -> float:
    return round(max(0.0, (end - start).total_seconds()), 1)

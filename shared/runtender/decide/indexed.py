"""Many workers under one Kubernetes Job: what its own status decides, and why pods that do not start should end it.

The Job's status decides while it can be read; a worker's marker only wakes the plane (design 4). So a job ends here when its
Job has finished, or when its pods wait for something that will not come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum

from runtender.decide.decision import Context, current, is_set, is_settled, sight_of
from runtender.decide.endings import Ending, boot_limit
from runtender.decide.settle import by_summary, phase_times, settle
from runtender.ids import MarkerName
from runtender.model import (
    Indexes,
    Job,
    Outcome,
    Phase,
    Reason,
    Resource,
    SubmitKind,
    Summary,
)
from runtender.observed import (
    MarkerPair,
    PodsSeen,
    Present,
    Seen,
    TroubleKind,
    WorkerSet,
    WorkersVerdict,
)

FEW_WORKERS = 32
"""Up to this many, each index that ends is looked at at once; more are looked at in turns."""

_DEADLINE = "DeadlineExceeded"
# What ends a job when it has lasted as many times the patience with pods in trouble.
_LASTING: Mapping[TroubleKind, tuple[int, Reason]] = {
    TroubleKind.IMAGE_PULL: (1, Reason.IMAGE_PULL),
    TroubleKind.CONFIG: (1, Reason.CONFIG_FAULT),
    TroubleKind.MOUNT: (2, Reason.CONFIG_FAULT),
}
# What ends a job when it has lasted until the capacity deadline: somebody else may make room.
_WANTING_ROOM: Mapping[TroubleKind, Reason] = {
    TroubleKind.UNSCHEDULABLE: Reason.UNSCHEDULABLE,
    TroubleKind.QUOTA: Reason.QUOTA_BLOCKED,
}


def workers_of(row: Resource, seen: Seen) -> WorkerSet | None:
    """Return the workers as the Job counts them; None where it is not there or was not seen."""
    sight = sight_of(row, seen)
    return sight.workers if isinstance(sight, Present) else None


def has_finished(row: Resource, seen: Seen) -> bool:
    """True when the Job says that all its workers have ended."""
    workers = workers_of(row, seen)
    return workers is not None and workers.verdict is not WorkersVerdict.RUNNING


def settle_by_workers(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> Job | None:
    """Settle by the Job's status; None while it is at work, or its workers' summaries could not be read yet."""
    workers = workers_of(row, seen)
    if workers is None or workers.verdict is WorkersVerdict.RUNNING:
        return None
    summary = seen.summaries.get(row.nonce)
    if job.plan.kind is SubmitKind.FORECAST and row.nonce not in seen.summaries:
        return None
    outcome, reason, detail = _verdict(job, workers, summary, seen.pods.get(row.nonce))
    cause = f"Job {workers.verdict}: {workers.detail}"[:300]
    settled = settle(job, ctx, outcome=outcome, reason=reason, detail=detail, cause=cause)
    started = pair.started.recorded_at if pair.started else job.started_at or workers.started_at
    ended = workers.completed_at or ctx.now
    return replace(
        settled,
        summary=summary or job.summary,
        indexes=indexes_of(workers),
        phases=phase_times(job, started, ended),
    )


def _verdict(
    job: Job, workers: WorkerSet, summary: Summary | None, pods: PodsSeen | None
) -> tuple[Outcome, Reason, str]:
    if workers.verdict is WorkersVerdict.SUCCEEDED:
        return by_summary(summary, Reason.COMPLETED)
    if workers.failed_reason == _DEADLINE:
        return Outcome.TIMED_OUT, Reason.TTL_EXPIRED, workers.detail
    reason, word = _why_failed(pods)
    if not workers.failed_indexes:
        return Outcome.FAILED, reason, f"{workers.detail}{word}"
    detail = f"indexes {workers.failed_indexes} of {workers.completions} failed{word}"
    if job.plan.kind is SubmitKind.FORECAST and workers.succeeded and (summary is None or summary.n_ok):
        return Outcome.PARTIAL, Reason.FAILED_INDEXES, detail
    return Outcome.FAILED, Reason.FAILED_INDEXES if workers.succeeded else reason, detail


def _why_failed(pods: PodsSeen | None) -> tuple[Reason, str]:
    """Return the reason of a Job all of whose workers failed, and a word on the first of them."""
    failed = [
        pod for pod in (pods.pods if pods else ()) if pod.exit_code or pod.out_of_memory or pod.disrupted
    ]
    if not failed:
        return Reason.EXIT_CODE, ""
    first = failed[0]
    if any(pod.out_of_memory for pod in failed):
        return Reason.OUT_OF_MEMORY, f"; {first.name} ran out of memory"
    if any(pod.exit_code for pod in failed):
        code = next(pod for pod in failed if pod.exit_code)
        return Reason.EXIT_CODE, f"; {code.name}: exit_code={code.exit_code}"
    return Reason.PREEMPTED, f"; {first.name}: {first.reason or 'taken away by the platform'}"


def indexes_of(workers: WorkerSet) -> Indexes:
    """Return the workers' progress as the job keeps it."""
    return Indexes(
        completions=workers.completions,
        active=workers.active,
        completed=workers.completed_indexes,
        failed=workers.failed_indexes,
    )


def waits_in_vain(job: Job, row: Resource, seen: Seen, ctx: Context) -> Ending | None:
    """Return why pods that do not start should end the job, or None.

    A wrong image or configuration does not mend itself; for room and quota it is worth waiting as long as for capacity.
    """
    pods = seen.pods.get(row.nonce)
    if pods is None or pods.trouble is None or pods.started_at is not None or job.started_at is not None:
        return None
    trouble = pods.trouble
    detail = f"{trouble.reason}: {trouble.message}"
    if trouble.kind in _WANTING_ROOM:
        over = ctx.now >= job.deadlines.capacity
        return Ending(reason=_WANTING_ROOM[trouble.kind], detail=detail) if over else None
    times, reason = _LASTING[trouble.kind]
    lasted = ctx.now - trouble.since >= times * ctx.timing.pod_trouble
    return Ending(reason=reason, detail=detail) if lasted else None


def with_boot_deadline(job: Job, row: Resource, pods: PodsSeen | None, ctx: Context) -> Job:
    """Return the job with the moment by which a worker must have spoken.

    It counts from when a pod has a node. Until then it cannot be later than a pod that gets one with the last of the patience
    for room.
    """
    limit = boot_limit(job, ctx)
    scheduled = pods.scheduled_at if pods else None
    latest = max(job.deadlines.capacity, row.created_at or ctx.now)
    boot = (scheduled or latest) + limit
    return replace(job, deadlines=replace(job.deadlines, boot=boot))


class Stir(Enum):
    """What a marker of one worker calls for."""

    NOTHING = "nothing"
    LOOK = "look"
    LOOK_IN_TURN = "look in turn"


def stirred_by(job: Job, where: MarkerName, now: datetime, pause: timedelta) -> Stir:
    """Say what an event about a worker's marker calls for, from the job alone.

    Of many workers that end at about the same time one event looks for all; the others are covered by the look that follows
    at the next tick.
    """
    row = current(job)
    if row is None or not is_set(row):
        return Stir.LOOK
    told = where.stage == "started" and job.phase is not Phase.PROVISIONING
    if is_settled(job) or where.nonce != row.nonce or told:
        return Stir.NOTHING
    if job.plan.worker_count <= FEW_WORKERS:
        return Stir.LOOK
    if job.stirred_at is not None and now - job.stirred_at < pause:
        return Stir.NOTHING
    return Stir.LOOK_IN_TURN

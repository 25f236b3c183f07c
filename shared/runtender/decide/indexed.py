"""Many workers under one Kubernetes Job: what its own status decides, and why pods that do not start should end it.

The Job's status decides while it can be read; a worker's marker only wakes the plane (design 4). So a job ends here when its
Job has finished, or when its pods wait for something that will not come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum

from runtender.decide.decision import (
    Context,
    abandoned,
    current,
    is_at_rest,
    is_set,
    is_settled,
    sight_of,
)
from runtender.decide.endings import OUTCOME_BY_REASON, Ending, boot_limit, is_disarmed
from runtender.decide.settle import by_summary, phase_times, settle
from runtender.ids import MarkerName
from runtender.model import (
    Indexes,
    Job,
    Marker,
    MarkerStatus,
    Outcome,
    Phase,
    Reason,
    Resource,
    ResourceState,
    SubmitKind,
    Summary,
    Writer,
)
from runtender.observed import (
    MarkerPair,
    PodSeen,
    PodsSeen,
    Present,
    Seen,
    TroubleKind,
    WorkerSet,
    WorkersVerdict,
)

FEW_WORKERS = 32
"""Up to this many, each index that ends is looked at at once; more are looked at in turns."""

# Every other of 100,000 indexes makes a list of 300,000 characters.
_MOST_WORDS, _MOST_KEPT = 1000, 20_000

_DEADLINE = "DeadlineExceeded"
_FAILED = "Failed"
# What a failed pod can show, gravest first.
_FAULTS: tuple[tuple[Reason, Callable[[PodSeen], object], Callable[[PodSeen], str]], ...] = (
    (Reason.OUT_OF_MEMORY, lambda pod: pod.out_of_memory, lambda _pod: "ran out of memory"),
    (Reason.TTL_EXPIRED, lambda pod: pod.reason == _DEADLINE, lambda _pod: "ran longer than a pod may"),
    (Reason.EXIT_CODE, lambda pod: pod.exit_code, lambda pod: f"exit_code={pod.exit_code}"),
)
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


def has_finished(job: Job, row: Resource, seen: Seen, ctx: Context) -> bool:
    """True when the row's Job says that all its workers have ended.

    A Job of the same name that another create made says nothing, nor does one whose placement was given up: its workers
    were told to do nothing.
    """
    workers, sight = workers_of(row, seen), seen.sights.get(row.nonce)
    if workers is None or workers.verdict is WorkersVerdict.RUNNING or abandoned(row):
        return False
    answered = row.state is not ResourceState.INTENDED
    return answered or (isinstance(sight, Present) and ctx.made(sight, job, row))


def with_start(pair: MarkerPair, pods: PodsSeen | None) -> MarkerPair:
    """Return the markers with the start that pods show, where no marker tells of one: a plain task writes none."""
    if pair.started is not None or is_disarmed(pair) or pods is None or pods.started_at is None:
        return pair
    seen = Marker(status=MarkerStatus.RUNNING, writer=Writer.PLANE, recorded_at=pods.started_at)
    return replace(pair, started=seen)


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
    detail = f"{_which_failed(workers)}{word}"
    if not workers.succeeded:
        return OUTCOME_BY_REASON.get(reason, Outcome.FAILED), reason, detail
    delivered = job.plan.kind is SubmitKind.FORECAST and (summary is None or summary.n_ok)
    return Outcome.PARTIAL if delivered else Outcome.FAILED, Reason.FAILED_INDEXES, detail


def _which_failed(workers: WorkerSet) -> str:
    """Name the indexes that failed; a server that does not count them names those that did not."""
    failed, done = (
        _cut(indexes, _MOST_WORDS) for indexes in (workers.failed_indexes, workers.completed_indexes)
    )
    if failed:
        one = failed.isdigit()
        return f"{'index' if one else 'indexes'} {failed} failed ({workers.completions} workers)"
    said = workers.detail[:_MOST_WORDS]
    return f"{said}; only indexes {done} of {workers.completions} completed" if done else said


def _why_failed(pods: PodsSeen | None) -> tuple[Reason, str]:
    """Return why workers failed, and a word on one of them. What the platform took away is the reason only of all."""
    ended = [pod for pod in (pods.pods if pods else ()) if pod.phase == _FAILED or pod.disrupted]
    own = [pod for pod in ended if not pod.disrupted]
    for reason, shows, words in _FAULTS:
        guilty = next((pod for pod in own if shows(pod)), None)
        if guilty is not None:
            return reason, f"; {guilty.name}: {words(guilty)}"
    if ended and not own:
        return Reason.PREEMPTED, f"; {ended[0].name}: {ended[0].reason or 'taken away by the platform'}"
    return Reason.EXIT_CODE, f"; {own[0].name}: {own[0].reason or _FAILED}" if own else ""


def indexes_of(workers: WorkerSet) -> Indexes:
    """Return the workers' progress as the job keeps it: of a list that would fill its document, the beginning."""
    return Indexes(
        completions=workers.completions,
        active=workers.active,
        completed=_cut(workers.completed_indexes, _MOST_KEPT),
        failed=_cut(workers.failed_indexes, _MOST_KEPT),
    )


def _cut(indexes: str, most: int) -> str:
    """Return a list of indexes in at most so many characters and a word on what is left out."""
    if len(indexes) <= most:
        return indexes
    return f"{indexes[:most].rpartition(',')[0]},..."


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

    It counts from when a pod has a node, but is never later than for a pod that gets one with the last of the patience for
    room.
    """
    latest = max(job.deadlines.capacity, row.created_at or ctx.now)
    scheduled = pods.scheduled_at if pods else None
    boot = min(scheduled or latest, latest) + boot_limit(job, ctx)
    return replace(job, deadlines=replace(job.deadlines, boot=boot))


class Stir(Enum):
    """What a marker of one worker calls for. FOLLOW: a look now, and one more soon."""

    NOTHING = "nothing"
    LOOK = "look"
    FOLLOW = "follow"


def stirred_by(job: Job, where: MarkerName, now: datetime, pause: timedelta) -> Stir:
    """Say what an event about a marker calls for, from the job alone.

    A worker tells its end a moment before the Job's status shows it, so such a look is followed by another one. Of many
    workers that end at about the same time one event looks for all: those after it are left to the look that follows.
    """
    row = current(job)
    if is_at_rest(job):
        return Stir.NOTHING
    if row is None or not is_set(row):
        return Stir.LOOK
    told = where.stage == "started" and job.phase is not Phase.PROVISIONING
    if is_settled(job) or where.nonce != row.nonce or told:
        return Stir.NOTHING
    if where.index is None:
        return Stir.LOOK
    few = job.plan.worker_count <= FEW_WORKERS
    if few and where.stage == "started":
        return Stir.LOOK
    recent = job.stirred_at is not None and now - job.stirred_at < pause
    return Stir.NOTHING if recent and not few else Stir.FOLLOW

"""When a job is next to be looked at, if no event names it before (schema: `wake_at`)."""

from __future__ import annotations

from datetime import datetime, timedelta

from runtender.decide.admission import waits_for_admission
from runtender.decide.decision import Context, current, is_set
from runtender.model import Job, Phase, Resource, ResourceState, SubmitKind

# Wakes are spread by up to a tenth of their span, so that a burst of jobs does not come due in one tick for ever.
_SPREAD = 0.1
_MOST_DOUBLINGS = 6


def next_wake(job: Job, ctx: Context) -> datetime | None:
    """Return the moment of the next look; None only at rest."""
    if job.phase is Phase.DONE:
        return None
    if current(job) is None and job.walk.turn is not None and job.walk.resume_at is not None:
        # A turn among others: chance would mix them up.
        return max(ctx.now, min(job.walk.resume_at, job.deadlines.capacity))
    target = _target(job, ctx)
    span = max(target - ctx.now, timedelta())
    return ctx.now + span * (1 + _SPREAD * ctx.jitter)


def _target(job: Job, ctx: Context) -> datetime:
    row = current(job)
    if row is not None and row.until is not None and row.until > ctx.now:
        return row.until
    if job.phase is Phase.STOPPING:
        return ctx.now + _teardown_pause(job, row, ctx)
    if waits_for_admission(job):
        # Whoever makes room lets it in; this is only in case that goes wrong.
        return ctx.now + ctx.timing.watch_interval
    if row is None:
        return max(ctx.now, min(job.walk.resume_at or ctx.now, job.deadlines.capacity))
    if row.state is ResourceState.DELETING or row.operation is not None:
        return ctx.now + ctx.timing.tick
    if row.missing_since is not None:
        return max(row.missing_since + ctx.timing.lost_confirm, ctx.now)
    return max(ctx.now, min(_watch_targets(job, row, ctx)))


def _watch_targets(job: Job, row: Resource, ctx: Context) -> list[datetime]:
    targets = [ctx.now + ctx.timing.watch_interval]
    deadline = job.deadlines.run or job.deadlines.boot
    if deadline is not None:
        # A deadline that passed without effect (an unreadable marker) is looked at again at the next tick.
        targets.append(deadline if deadline > ctx.now else ctx.now + ctx.timing.tick)
    if job.started_at is not None and job.plan.kind is SubmitKind.FORECAST and ctx.timing.stall_grace:
        stall = max(job.started_at, job.cells.last_at or job.started_at) + ctx.timing.stall_grace
        targets.append(stall if stall > ctx.now else ctx.now + ctx.timing.tick)
    if row.state is ResourceState.INTENDED:
        targets.append(ctx.now + ctx.timing.tick)
    return [*targets, *_set_targets(job, ctx)] if is_set(row) else targets


def _set_targets(job: Job, ctx: Context) -> list[datetime]:
    """Many workers: why their pods do not start shows soon, and what their events told is looked at once more."""
    targets = []
    if job.phase is Phase.PROVISIONING:
        targets.append(ctx.now + ctx.timing.pod_check)
        if job.deadlines.capacity > ctx.now:
            targets.append(job.deadlines.capacity)
    if job.stirred_at is not None and ctx.now - job.stirred_at < ctx.timing.index_pause:
        targets.append(job.stirred_at + ctx.timing.index_pause)
    return targets


def _teardown_pause(job: Job, row: Resource | None, ctx: Context) -> timedelta:
    # Refusals make the pauses longer. Once a delete was taken there is something to see soon, as after the first one.
    accepted = row is not None and row.delete_sent_at is not None
    doublings = 0 if accepted else min(job.cleanup.tries, _MOST_DOUBLINGS)
    pause: timedelta = ctx.timing.teardown_backoff * 2**doublings
    return min(pause, ctx.timing.teardown_backoff_max)

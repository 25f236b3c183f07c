"""What must be seen before a job can be decided: asked for in stages, cheapest and most binding first.

The terminal marker comes before everything else. Later looks are wanted only when the earlier ones do not settle the
job, so that a happy run costs few calls. A look that failed is asked for once per step and then simply stays unseen.
"""

from __future__ import annotations

from runtender.decide.admission import join, waits_for_admission
from runtender.decide.decision import (
    Context,
    Look,
    LookKind,
    abandoned,
    current,
    is_at_rest,
    is_set,
    is_settled,
    may_have_worker,
    sight_of,
    waits_for_predecessor,
)
from runtender.decide.endings import (
    is_disarmed,
    is_missing,
    is_overdue,
    stalled,
    stopped_early,
    summary_decides,
)
from runtender.decide.indexed import has_finished, workers_of
from runtender.decide.walk import begins_pass
from runtender.model import Job, Phase, Resource, ResourceState, SubmitKind
from runtender.observed import MarkerPair, Present, Seen, Sight, WorkersVerdict


def wanted(job: Job, seen: Seen, ctx: Context) -> tuple[Look, ...]:
    """Return the next looks to take, given what has been seen; empty when it is time to decide."""
    row = current(job)
    if is_at_rest(job):
        return ()
    if row is None:
        return () if is_settled(job) else _before_placing(job, seen, ctx)
    if is_settled(job):
        return _teardown(job, row, seen, ctx)
    if may_have_worker(row) and row.nonce not in seen.markers:
        return (Look(LookKind.MARKERS, row.nonce),)
    pair = seen.markers.get(row.nonce, MarkerPair())
    if pair.terminal is not None and not is_disarmed(pair):
        needed = summary_decides(job, pair.terminal)
        return _unseen(seen, Look(LookKind.SUMMARY, row.nonce)) if needed else ()
    if abandoned(row):
        return _teardown(job, row, seen, ctx)
    if row.state is ResourceState.INTENDED:
        return _intended(job, row, pair, seen, ctx)
    return (_alive_set if is_set(row) else _alive)(job, row, pair, seen, ctx)


def _before_placing(job: Job, seen: Seen, ctx: Context) -> tuple[Look, ...]:
    """Looks for a job that has nothing anywhere."""
    if waits_for_predecessor(job) and not seen.predecessor_at_rest:
        return (Look(LookKind.PREDECESSOR, ""),) if seen.predecessor_at_rest is None else ()
    if not begins_pass(job, ctx) or waits_for_admission(join(job, ctx)):
        return ()
    looks = [Look(LookKind.SHORTAGES, "")] if seen.short is None else []
    if job.plan.walk.preflight and seen.quota is None:
        looks.append(Look(LookKind.QUOTA, ""))
    return tuple(looks)


def _intended(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> tuple[Look, ...]:
    """Looks for a create that nobody answered: who is there, and how it ended where it already has."""
    if ctx.is_held(row):
        return ()
    if row.nonce not in seen.sights:
        return (Look(LookKind.SIGHT, row.nonce),)
    decides = is_set(row) and not is_disarmed(pair) and has_finished(job, row, seen, ctx)
    return _finished(job, row, seen) if decides else ()


def _alive(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> tuple[Look, ...]:
    """Looks for a placement whose create was taken."""
    if pair.started is not None and job.phase is Phase.PROVISIONING:
        return ()
    if row.operation is not None:
        return _unseen(seen, Look(LookKind.OPERATION, row.nonce))
    if job.cancel_requested:
        return _unseen(seen, Look(LookKind.SERIAL, row.nonce))
    if is_overdue(job, pair, ctx.now):
        return _unseen(seen, *_last_traces(job, row))
    return _close_look(job, row, pair, seen, ctx) if ctx.thorough else ()


def _alive_set(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> tuple[Look, ...]:
    """Looks for a Job that was created: its own status comes first, because it decides."""
    if pair.started is not None and job.phase is Phase.PROVISIONING and not job.cancel_requested:
        return ()
    overdue = is_overdue(job, pair, ctx.now)
    if row.nonce not in seen.sights and not overdue:
        return (Look(LookKind.SIGHT, row.nonce),)
    if has_finished(job, row, seen, ctx):
        return _finished(job, row, seen)
    sight = sight_of(row, seen)
    gone = sight is not None and is_missing(row, sight, ctx)
    if gone or overdue:
        return _unseen(seen, *_last_word_of_set(job, row))
    return () if job.cancel_requested else _close_look_at_set(job, row, seen, ctx)


def _finished(job: Job, row: Resource, seen: Seen) -> tuple[Look, ...]:
    """Ask what workers that have ended achieved, and why any failed."""
    workers = workers_of(row, seen)
    kinds = [LookKind.SUMMARY] if job.plan.kind is SubmitKind.FORECAST else []
    if workers is not None and workers.verdict is WorkersVerdict.FAILED:
        kinds.append(LookKind.PODS)
    return _unseen(seen, *(Look(kind, row.nonce) for kind in kinds))


def _last_word_of_set(job: Job, row: Resource) -> list[Look]:
    """Ask all that could still speak against an end: the Job itself, what its workers left, pods that run in silence."""
    kinds = [LookKind.SIGHT]
    if job.plan.kind is SubmitKind.FORECAST:
        kinds.append(LookKind.SUMMARY)
    if job.phase is Phase.PROVISIONING:
        kinds.append(LookKind.PODS)
    return [Look(kind, row.nonce) for kind in kinds]


def _close_look_at_set(job: Job, row: Resource, seen: Seen, ctx: Context) -> tuple[Look, ...]:
    """Ask why pods do not start, or whether the results get on."""
    if not ctx.thorough or not isinstance(sight_of(row, seen), Present):
        return ()
    if job.phase is Phase.PROVISIONING:
        return _unseen(seen, Look(LookKind.PODS, row.nonce))
    if job.plan.kind is SubmitKind.FORECAST and seen.cells is None:
        return (Look(LookKind.CELLS, row.nonce),)
    stuck = stalled(job, row, seen, ctx) is not None
    return _unseen(seen, Look(LookKind.SUMMARY, row.nonce)) if stuck else ()


def _close_look(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> tuple[Look, ...]:
    """Ask of a confirmed placement whether it is there, and whether it gets on."""
    if row.nonce not in seen.sights:
        return (Look(LookKind.SIGHT, row.nonce),)
    sight = sight_of(row, seen)
    if sight is not None and is_missing(row, sight, ctx):
        return _unseen(seen, *_after_loss(job, row, sight))
    if sight is not None and stopped_early(row, pair, sight, ctx):
        return _unseen(seen, Look(LookKind.FATE, row.nonce))
    if job.phase is Phase.RUNNING and job.plan.kind is SubmitKind.FORECAST and seen.cells is None:
        return (Look(LookKind.CELLS, row.nonce),)
    if stalled(job, row, seen, ctx) is not None:
        return _unseen(seen, *_last_traces(job, row))
    return ()


def _last_traces(job: Job, row: Resource) -> list[Look]:
    """Ask what a silent worker may have left: its terminal marker on the console, its summary beside its cells."""
    kinds = [LookKind.SERIAL]
    if job.plan.kind is SubmitKind.FORECAST and job.phase is Phase.RUNNING:
        kinds.append(LookKind.SUMMARY)
    return [Look(kind, row.nonce) for kind in kinds]


def _after_loss(job: Job, row: Resource, sight: Sight) -> list[Look]:
    kinds = [LookKind.FATE]
    if job.plan.kind is SubmitKind.FORECAST:
        kinds.append(LookKind.SUMMARY)
    if isinstance(sight, Present):
        kinds.append(LookKind.SERIAL)
    return [Look(kind, row.nonce) for kind in kinds]


def _teardown(job: Job, row: Resource, seen: Seen, ctx: Context) -> tuple[Look, ...]:
    """Ask of a placement that is to go: is it there, and is anything left that it covers."""
    if ctx.is_held(row):
        return ()
    if row.operation is not None and row.nonce not in seen.operations:
        return (Look(LookKind.OPERATION, row.nonce),)
    if row.nonce not in seen.sights:
        return (Look(LookKind.SIGHT, row.nonce),)
    sight = seen.sights[row.nonce]
    ours = isinstance(sight, Present) and ctx.owns(sight, job)
    return () if ours or row.refused else _unseen(seen, Look(LookKind.REMAINS, row.nonce))


def _unseen(seen: Seen, *looks: Look) -> tuple[Look, ...]:
    return tuple(look for look in looks if look.nonce not in _REGISTER[look.kind](seen))


_REGISTER = {
    LookKind.MARKERS: lambda seen: seen.markers,
    LookKind.OPERATION: lambda seen: seen.operations,
    LookKind.SIGHT: lambda seen: seen.sights,
    LookKind.REMAINS: lambda seen: seen.remains,
    LookKind.FATE: lambda seen: seen.fates,
    LookKind.SERIAL: lambda seen: seen.serials,
    LookKind.SUMMARY: lambda seen: seen.summaries,
    LookKind.PODS: lambda seen: seen.pods,
}

"""The walk: which placement comes next, and what a refusal means for it. All of its state is in the job.

One placement at a time: the next row is made only when no row is alive. Waiting happens only between passes, except
for rate limits and busy answers, which wait on the same placement (spec support.md 11, design 3 and 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from runtender.capacity.policy import backoff
from runtender.decide.decision import Context, Decision, SendCreate, moved
from runtender.decide.endings import Ending
from runtender.decide.preflight import Preflight, preflight
from runtender.decide.settle import end, settle
from runtender.ids import nonce, request_uuid
from runtender.model import (
    Block,
    Job,
    LedgerEntry,
    Outcome,
    Phase,
    Placement,
    Reason,
    Resource,
    ResourceKind,
    ResourceState,
    Scope,
    Verdict,
    Walk,
)
from runtender.observed import MarkerPair, Refusal, Seen

KIND_BY_RUNTIME: Mapping[str, ResourceKind] = {"gce": ResourceKind.VM, "gke": ResourceKind.JOB}

_SAME_PLACEMENT = {Verdict.RATE_LIMITED, Verdict.RETRY}
_MOST_DOUBLINGS = 8
# Rows seen gone are kept for people to read; this many are enough to explain a long walk.
_ROWS_KEPT = 20


def place(job: Job, ctx: Context, seen: Seen | None = None) -> Decision:
    """Go on with the search: make the next row, wait, or give up. A new pass begins by what was `seen` of the places."""
    if job.cancel_requested:
        return end(
            job, None, MarkerPair(), Ending(reason=Reason.CANCELLED, detail="cancelled on request"), ctx
        )
    if ctx.now >= job.deadlines.capacity:
        return _give_up(job, ctx, Reason.CAPACITY_TIMEOUT, "no capacity was found within the capacity wait")
    walk = job.walk
    if _bounds_reached(job, ctx):
        return _give_up(job, ctx, Reason.CAPACITY_EXHAUSTED, _exhausted_words(job))
    if walk.resume_at is not None and ctx.now < walk.resume_at:
        return Decision(job=job)
    if seen is not None and begins_pass(job, ctx):
        return _begin_pass(job, ctx, preflight(job.plan, seen.quota or {}), seen.short or ())
    return _go_on(job, ctx)


def begins_pass(job: Job, ctx: Context) -> bool:
    """True when the job, having nothing anywhere, may begin a pass now, and wants to know first what the places are like."""
    walk = job.walk
    rests = walk.resume_at is not None and ctx.now < walk.resume_at
    over = job.cancel_requested or ctx.now >= job.deadlines.capacity or _bounds_reached(job, ctx)
    return not (walk.order or rests or over)


def _begin_pass(job: Job, ctx: Context, found: Preflight, short: tuple[Block, ...]) -> Decision:
    """Leave the regions without quota out of the pass. Where nothing else is left, wait for quota or give up.

    Places that lately had no room for others come last, each kind in the plan's order.
    """
    placements = job.plan.placements
    with_quota = [index for index, one in enumerate(placements) if not found.blocks(one)]
    order = tuple(sorted(with_quota, key=lambda index: _is_blocked(placements[index], short)))
    job = replace(job, walk=replace(job.walk, preflight=found.to_json()))
    blocked = job.walk.blocked_at(ctx.now)
    if not found.blocked or any(not _is_blocked(placements[index], blocked) for index in order):
        return _go_on(replace(job, walk=replace(job.walk, order=order, quota_waits=0)), ctx)
    if not job.plan.walk.wait_for_quota:
        return _give_up(job, ctx, Reason.QUOTA_BLOCKED, found.why)
    waits = job.walk.quota_waits + 1
    rest = ctx.now + backoff(job.plan.walk, waits)
    job = replace(job, walk=replace(job.walk, quota_waits=waits, resume_at=rest))
    cause = "no region has quota"
    return Decision(job=moved(job, ctx, cause, note=found.why, phase=Phase.AWAITING_CAPACITY))


def _go_on(job: Job, ctx: Context) -> Decision:
    walk = _skip_blocked(job, ctx)
    if walk.next < len(walk.order) and ctx.turn is not None:
        waiting = replace(walk, resume_at=ctx.turn.at, turn=ctx.turn.minute)
        return Decision(job=replace(job, walk=waiting))
    if walk.next < len(walk.order):
        return _intend(replace(job, walk=replace(walk, turn=None)), ctx)
    return _end_of_pass(replace(job, walk=walk), ctx)


def _bounds_reached(job: Job, ctx: Context) -> bool:
    policy = job.plan.walk
    return bool(
        (policy.max_attempts and job.walk.attempts >= policy.max_attempts)
        or (policy.max_wall and ctx.now - job.search_began_at >= policy.max_wall)
    )


def _skip_blocked(job: Job, ctx: Context) -> Walk:
    """Move on to the first placement of this pass that nothing blocks."""
    placements = job.plan.placements
    blocked = job.walk.blocked_at(ctx.now)
    order = job.walk.order or tuple(range(len(placements)))
    position = job.walk.next
    while position < len(order) and _is_blocked(placements[order[position]], blocked):
        position += 1
    return replace(job.walk, blocked=blocked, order=order, next=position, resume_at=None)


def _is_blocked(placement: Placement, blocks: tuple[Block, ...]) -> bool:
    names = {Scope.ZONE: placement.location, Scope.REGION: placement.region, Scope.PROJECT: "project"}
    return any(
        names[block.scope] == block.name and block.machine in {None, placement.machine_label}
        for block in blocks
    )


def _intend(job: Job, ctx: Context) -> Decision:
    """Save the intent to create, held by this invocation; the call follows the save."""
    index = job.walk.order[job.walk.next]
    placement = job.plan.placements[index]
    tries = [row.try_number for row in job.resources if row.placement == job.walk.attempts]
    number = max(tries, default=-1) + 1
    row = Resource(
        kind=KIND_BY_RUNTIME[job.runtime],
        name=job.plan.name,
        location=placement.location,
        placement=job.walk.attempts,
        try_number=number,
        nonce=nonce(job.job_key, job.walk.attempts, number),
        request_id=request_uuid(job.job_key, job.attempt, job.walk.attempts, number),
        state=ResourceState.INTENDED,
        token=ctx.token,
        since=ctx.now,
        until=ctx.now + ctx.timing.hold,
        sent_at=ctx.now,
        place=index,
    )
    job = replace(job, resources=(*job.resources[-_ROWS_KEPT:], row))
    job = moved(job, ctx, f"placing in {placement.label}", phase=Phase.PROVISIONING)
    return Decision(job=job, effects=(SendCreate(row.nonce),))


def _end_of_pass(job: Job, ctx: Context) -> Decision:
    """All placements of this pass are tried: rest, unless nothing could ever change."""
    policy, passes = job.plan.walk, job.walk.passes + 1
    walk = replace(job.walk, passes=passes, next=0, order=())
    job = replace(job, walk=walk)
    if all(_is_blocked(placement, walk.blocked) for placement in job.plan.placements):
        return _give_up(job, ctx, Reason.CAPACITY_EXHAUSTED, _exhausted_words(job))
    rest = backoff(policy, passes)
    if (policy.max_passes and passes >= policy.max_passes) or _ends_after_wall(job, ctx.now + rest):
        return _give_up(job, ctx, Reason.CAPACITY_EXHAUSTED, _exhausted_words(job))
    job = replace(job, walk=replace(walk, resume_at=ctx.now + rest))
    job = moved(job, ctx, f"pass {passes} found no capacity", phase=Phase.AWAITING_CAPACITY)
    return Decision(job=job)


def _ends_after_wall(job: Job, moment: datetime) -> bool:
    wall = job.plan.walk.max_wall
    return bool(wall) and moment >= job.search_began_at + wall


def _give_up(job: Job, ctx: Context, reason: Reason, detail: str) -> Decision:
    job = replace(job, walk=replace(job.walk, exhausted=True))
    return Decision(
        job=settle(
            job, ctx, outcome=Outcome.NO_CAPACITY, reason=reason, detail=detail, cause=f"plane: {reason}"
        )
    )


def _exhausted_words(job: Job) -> str:
    last = job.walk.ledger[-1].message if job.walk.ledger else "no placement could be tried"
    names = ", ".join(sorted({entry.candidate for entry in job.walk.ledger}))
    return f"no capacity after {job.walk.attempts} attempt(s) in {names or 'no place'}; last: {last}"


def refuse_placement(
    job: Job, row: Resource, refusal: Refusal, ctx: Context, *, definite: bool = True
) -> Job:
    """Record that a placement did not come off; the row goes into teardown, the walk moves as the verdict says.

    `definite`: no worker can exist (the create itself was refused), so the row needs no tombstone.
    """
    gone = replace(
        row, state=ResourceState.DELETING, token=None, until=None, operation=None, refused=definite
    )
    job = job.with_row(gone)
    if refusal.verdict is Verdict.CONFIG_FAULT:
        return settle(
            job,
            ctx,
            outcome=Outcome.FAILED,
            reason=Reason.CONFIG_FAULT,
            detail=f"{row.location}: {refusal.code}: {refusal.message}",
            cause=f"refused in {row.location}",
        )
    walk = replace(job.walk, ledger=(*job.walk.ledger, _entry(job, row, refusal, ctx)))
    if refusal.verdict in _SAME_PLACEMENT:
        return replace(job, walk=_wait_here(walk, refusal, ctx))
    walk = replace(walk, attempts=walk.attempts + 1, next=walk.next + 1, api_waits=0)
    if refusal.verdict is Verdict.HARD_CEILING:
        walk = replace(walk, blocked=(*walk.blocked, _block(job, row, refusal.scope, ctx)))
    return replace(job, walk=_prefer(walk, job, refusal.zones_available))


def _wait_here(walk: Walk, refusal: Refusal, ctx: Context) -> Walk:
    told = timedelta(seconds=refusal.retry_after_s or 0)
    patience = ctx.timing.busy_wait * 2 ** min(walk.api_waits, _MOST_DOUBLINGS)
    wait = min(max(told, patience), ctx.timing.busy_wait_max)
    return replace(walk, resume_at=ctx.now + wait, api_waits=walk.api_waits + 1)


def _entry(job: Job, row: Resource, refusal: Refusal, ctx: Context) -> LedgerEntry:
    return LedgerEntry(
        candidate=job.placement_of(row).label,
        verdict=refusal.verdict,
        code=refusal.code,
        message=refusal.message,
        elapsed_s=round((ctx.now - row.since).total_seconds(), 3),
        at=ctx.now,
        scope=refusal.scope,
        recognised=refusal.recognised,
    )


def _block(job: Job, row: Resource, scope: Scope, ctx: Context) -> Block:
    """Return what is not to be tried for a while: what one machine has no room for, another may have."""
    placement = job.placement_of(row)
    names = {Scope.ZONE: row.location, Scope.REGION: placement.region, Scope.PROJECT: "project"}
    return Block(
        scope=scope,
        name=names[scope],
        until=ctx.now + ctx.timing.placement_block,
        machine=None if scope is Scope.PROJECT else placement.machine_label,
    )


def _prefer(walk: Walk, job: Job, zones: tuple[str, ...]) -> Walk:
    """Move the zones that the platform itself recommends to the front of what is left of this pass."""
    done, left = walk.order[: walk.next], walk.order[walk.next :]
    recommended = [i for i in left if job.plan.placements[i].location in zones]
    return replace(walk, order=(*done, *recommended, *(i for i in left if i not in recommended)))

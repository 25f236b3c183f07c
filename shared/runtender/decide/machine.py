"""The state machine: what is known of a job and what was seen -> its next state and what to do about it. Pure.

`decide` branches, the modules beside it compute: `endings` (why a job should end), `settle` (how it ends), `walk`
(where to try next), `teardown` (how a row goes), `wake` (when to look again), `header` (the run's roll-up).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import assert_never

from runtender.decide.admission import join, leave, waits_for_admission
from runtender.decide.decision import (
    Context,
    Decision,
    SendCreate,
    Tombstone,
    current,
    is_at_rest,
    is_set,
    is_settled,
    may_have_worker,
    moved,
    sight_of,
    waits_for_predecessor,
)
from runtender.decide.endings import (
    Ending,
    boot_deadline,
    first_missed,
    given_up,
    is_disarmed,
    stopped_early,
    wish_to_end,
)
from runtender.decide.indexed import (
    has_finished,
    indexes_of,
    settle_by_workers,
    waits_in_vain,
    with_boot_deadline,
    with_start,
    workers_of,
)
from runtender.decide.settle import end, settle_by_marker
from runtender.decide.teardown import tear_down
from runtender.decide.wake import next_wake
from runtender.decide.walk import place, refuse_placement
from runtender.model import Job, Phase, Reason, Resource, ResourceState, Scope, Verdict
from runtender.observed import (
    Accepted,
    CreateAnswer,
    MarkerPair,
    NameTaken,
    Present,
    Refusal,
    Seen,
    Unclear,
)

_UNANSWERED = Refusal(
    verdict=Verdict.TRANSIENT_CAPACITY,
    scope=Scope.ZONE,
    code="UNANSWERED",
    message="the create was never answered and nothing appeared",
)
_STOPPED_AT_ONCE = Refusal(
    verdict=Verdict.TRANSIENT_CAPACITY,
    scope=Scope.ZONE,
    code="STOPPED_AT_ONCE",
    message="the machine was stopped within a minute of its creation, before it could say a word",
)
_GIVEN_UP = Refusal(
    verdict=Verdict.TRANSIENT_CAPACITY,
    scope=Scope.ZONE,
    code="GIVEN_UP",
    message="the placement was given up before its machine spoke",
)
# What lets a placement be given up although another copy of its create may have been taken.
_NO_ROOM = {Verdict.TRANSIENT_CAPACITY, Verdict.HARD_CEILING}


def decide(job: Job, seen: Seen, ctx: Context) -> Decision:
    """Return the job's next state, what to do once it is saved, and when to look again."""
    decision = _decide(job, seen, ctx)
    unchanged = decision.job == job
    if decision.tombstones or (unchanged and (not ctx.thorough or (job.wake_at or ctx.now) > ctx.now)):
        return decision
    after = leave(decision.job)
    after = replace(after, wake_at=next_wake(after, ctx))
    return replace(decision, job=after, more=_goes_on(job, decision))


def _goes_on(before: Job, decision: Decision) -> bool:
    """True when the next step can be taken at once: a create was sent, or something has just become fit to remove."""
    if any(isinstance(effect, SendCreate) for effect in decision.effects):
        return True
    after = decision.job
    if is_at_rest(after):
        return False
    doomed = {row.nonce for row in before.resources if row.state is ResourceState.DELETING}
    newly = [row for row in after.live if row.state is ResourceState.DELETING and row.nonce not in doomed]
    return bool(newly) or after.outcome != before.outcome


def _decide(job: Job, seen: Seen, ctx: Context) -> Decision:
    if is_at_rest(job):
        return Decision(job=job)
    row = current(job)
    if is_settled(job):
        return tear_down(job, row, seen, ctx)
    if row is None:
        return _first_place(job, seen, ctx)
    pair = seen.markers.get(row.nonce)
    if pair is None and may_have_worker(row):
        # Nothing is decided before the arbiter was read.
        return Decision(job=job)
    pods = seen.pods.get(row.nonce)
    pair = with_start(pair or MarkerPair(), pods)
    if pods is not None and job.phase is Phase.PROVISIONING:
        job = with_boot_deadline(job, row, pods, ctx)
    arbitrated = _by_arbiter(job, row, pair, seen, ctx)
    if arbitrated is not None:
        return Decision(job=arbitrated)
    ending = wish_to_end(job, row, pair, seen, ctx) or waits_in_vain(job, row, seen, ctx)
    if ending is not None:
        return end(job, row, pair, ending, ctx)
    return _by_state(job, row, pair, seen, ctx)


def _by_arbiter(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> Job | None:
    """Settle by the terminal marker, or by a Job's own status; None where neither has spoken.

    Where only a summary is missing the job stays as it is: it has ended, and in no other way.
    """
    settled = settle_by_marker(job, row, pair, seen, ctx)
    if settled is not None:
        return settled
    if pair.terminal is not None and not is_disarmed(pair):
        return job
    if not is_set(row) or is_disarmed(pair) or not has_finished(job, row, seen, ctx):
        return None
    return settle_by_workers(job, row, pair, seen, ctx) or job


def _first_place(job: Job, seen: Seen, ctx: Context) -> Decision:
    """Begin to place, unless an older attempt still has something: two attempts never run side by side."""
    waits = waits_for_predecessor(job) and not seen.predecessor_at_rest
    if not waits or job.cancel_requested or ctx.now >= job.deadlines.capacity:
        job = join(job, ctx)
        outside = waits_for_admission(job) and not job.cancel_requested
        return Decision(job=job) if outside else place(job, ctx, seen)
    return Decision(job=replace(job, walk=replace(job.walk, resume_at=ctx.now + ctx.timing.tick)))


def _by_state(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> Decision:
    match row.state:
        case ResourceState.INTENDED:
            return _intended(job, row, pair, seen, ctx)
        case ResourceState.CREATED if row.operation is not None:
            return _operating(job, row, pair, seen, ctx)
        case ResourceState.CREATED:
            return _watch(job, row, pair, seen, ctx)
        case ResourceState.DELETING | ResourceState.GONE:
            return _leave(job, row, pair, seen, ctx)
        case _:
            assert_never(row.state)


def _leave(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> Decision:
    """Go on removing an abandoned placement. As soon as it is gone the next one is intended, in the same write."""
    if may_have_worker(row) and pair.terminal is None:
        # A copy of its create may still land, when the next placement runs.
        return _forbid(job, row, "the placement was given up")
    decision = tear_down(job, row, seen, ctx)
    return place(decision.job, ctx) if current(decision.job) is None else decision


def _forbid(job: Job, row: Resource, detail: str) -> Decision:
    """Forbid a worker to start, should it wake."""
    return Decision(job=job, tombstones=(Tombstone(nonce=row.nonce, reason=None, detail=detail),))


def _intended(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> Decision:
    """A create that was never answered: look who is there, then adopt, send again, or give the placement up."""
    if ctx.is_held(row):
        return Decision(job=job)
    sight = seen.sights.get(row.nonce)
    if sight is None:
        return Decision(job=job)
    if isinstance(sight, Present):
        return _found(job, row, pair, sight, seen, ctx)
    if row.refused:
        gone = job.with_row(replace(row, state=ResourceState.GONE, token=None, until=None))
        return place(gone, ctx)
    if ctx.now - row.since < ctx.timing.resend_within and not pair.terminal_stored:
        return _send_again(job, row, ctx)
    return _disarm(job, row, pair, _UNANSWERED, ctx)


def _send_again(job: Job, row: Resource, ctx: Context) -> Decision:
    """Repeat a create that nobody answered, when it is the job's turn for that."""
    if ctx.turn is not None:
        waiting = replace(row, token=None, until=ctx.turn.at)
        return Decision(job=replace(job.with_row(waiting), walk=replace(job.walk, turn=ctx.turn.minute)))
    held = replace(row, token=ctx.token, until=ctx.now + ctx.timing.hold, sent_at=ctx.now)
    job = replace(job.with_row(held), walk=replace(job.walk, turn=None))
    return Decision(job=job, effects=(SendCreate(row.nonce),))


def _found(job: Job, row: Resource, pair: MarkerPair, sight: Present, seen: Seen, ctx: Context) -> Decision:
    if ctx.made(sight, job, row):
        if is_disarmed(pair):
            return Decision(job=refuse_placement(job, row, _UNANSWERED, ctx, definite=False))
        adopted = replace(
            row,
            state=ResourceState.CREATED,
            token=None,
            until=None,
            refused=False,
            uid=sight.uid,
            target_id=sight.uid,
            created_at=sight.created_at or ctx.now,
            confirmed_at=ctx.now,
        )
        return Decision(job=_with_boot_deadline(job.with_row(adopted), adopted, seen, ctx))
    if ctx.owns(sight, job):
        # An older placement of this job holds the name: remove it, then try the same place again.
        if may_have_worker(row) and pair.terminal is None:
            return _forbid(job, row, "name taken")
        waiting = replace(row, state=ResourceState.DELETING, token=None, until=None)
        return Decision(job=job.with_row(waiting))
    detail = f"the name {row.name!r} in {row.location} belongs to somebody else (id {sight.uid}); remove it or rename the run"
    return end(job, row, pair, Ending(reason=Reason.CONFIG_FAULT, detail=detail), ctx)


def _disarm(job: Job, row: Resource, pair: MarkerPair, refusal: Refusal, ctx: Context) -> Decision:
    """Give a placement up that may still wake: first forbid its worker to start."""
    if pair.terminal is None:
        return _forbid(job, row, refusal.message)
    return Decision(job=refuse_placement(job, row, refusal, ctx, definite=False))


def _operating(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> Decision:
    """The create was taken and its operation is open."""
    operation = seen.operations.get(row.nonce)
    if pair.started is not None:
        # The worker speaks: the operation has nothing to add.
        return _confirmed(job, row, pair, seen, ctx)
    if operation is None or not operation.done:
        return Decision(job=job, open_operation=True)
    if operation.refusal is not None:
        return Decision(job=refuse_placement(job, row, operation.refusal, ctx))
    target = operation.target_id or row.target_id
    return _confirmed(job, replace(row, target_id=target), pair, seen, ctx)


def _confirmed(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> Decision:
    row = replace(row, operation=None, confirmed_at=ctx.now)
    return _watch(_with_boot_deadline(job.with_row(row), row, seen, ctx), row, pair, seen, ctx)


def _with_boot_deadline(job: Job, row: Resource, seen: Seen, ctx: Context) -> Job:
    if is_set(row):
        return with_boot_deadline(job, row, seen.pods.get(row.nonce), ctx)
    return replace(job, deadlines=replace(job.deadlines, boot=boot_deadline(job, ctx.now, ctx)))


def _watch(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> Decision:
    """A confirmed placement: note its start, its cells, and whether it is still there."""
    job = _progress(job, row, pair, seen, ctx)
    sight = sight_of(row, seen)
    if sight is not None and stopped_early(row, pair, sight, ctx):
        fate = seen.fates.get(row.nonce)
        if fate is not None and fate.reason is None and not fate.deleted:
            return _disarm(job, row, pair, _STOPPED_AT_ONCE, ctx)
    if given_up(pair):
        return Decision(job=refuse_placement(job, row, _GIVEN_UP, ctx, definite=False))
    if sight is None:
        return Decision(job=job)
    uid = sight.uid if isinstance(sight, Present) else row.uid
    return Decision(job=job.with_row(replace(row, uid=uid, missing_since=first_missed(row, sight, ctx.now))))


def _progress(job: Job, row: Resource, pair: MarkerPair, seen: Seen, ctx: Context) -> Job:
    """Note how far the worker, or the many of them, have come."""
    started = pair.started.recorded_at if pair.started else None
    if started is not None and job.phase is not Phase.RUNNING:
        deadlines = replace(job.deadlines, run=started + job.plan.run_limit)
        job = moved(job, ctx, "worker started", phase=Phase.RUNNING, started_at=started, deadlines=deadlines)
    if seen.cells is not None:
        job = replace(job, cells=seen.cells)
    if not is_set(row):
        return job
    if job.phase is Phase.PROVISIONING and job.deadlines.boot is None:
        job = with_boot_deadline(job, row, None, ctx)
    workers = workers_of(row, seen)
    return job if workers is None else replace(job, indexes=indexes_of(workers))


def record_create(job: Job, nonce: str, answer: CreateAnswer, ctx: Context) -> Job:
    """Note the answer to a row's create on the job as it stands now (it may have been settled meanwhile)."""
    row = next((row for row in job.resources if row.nonce == nonce), None)
    if row is None or row.state is ResourceState.GONE:
        return job
    match answer:
        case Accepted():
            job = job.with_row(_accepted(row, answer, ctx, settled=is_settled(job)))
        case NameTaken():
            job = job.with_row(replace(row, refused=_sent_once(row), token=None, until=ctx.now))
        case Unclear():
            job = job.with_row(replace(row, token=None, until=ctx.now + ctx.timing.lost_confirm))
        case Refusal() if is_settled(job):
            left = replace(row, state=ResourceState.DELETING, token=None, until=None, refused=_sent_once(row))
            job = job.with_row(left)
        case Refusal() if not _sent_once(row) and answer.verdict not in _NO_ROOM:
            wait = max(ctx.timing.lost_confirm, timedelta(seconds=answer.retry_after_s or 0))
            job = job.with_row(replace(row, token=None, until=ctx.now + wait))
        case Refusal():
            job = refuse_placement(job, row, answer, ctx, definite=_sent_once(row))
        case _:
            assert_never(answer)
    return replace(job, wake_at=next_wake(job, ctx))


def is_under_way(job: Job) -> bool:
    """True for a Job that was just created, and wanted: there is nothing to see before its pods have had time to come."""
    row = current(job)
    taken = row is not None and is_set(row) and row.state is ResourceState.CREATED and row.operation is None
    return taken and not job.cancel_requested and not is_settled(job)


def _sent_once(row: Resource) -> bool:
    """True when the answer at hand is to the only copy of the create; another copy may land whatever it is."""
    return row.sent_at is None or row.sent_at == row.since


def request_cancel(job: Job) -> Job:
    """Note that somebody wants the job to end; one that is settled stays as it is."""
    return job if is_settled(job) else replace(job, cancel_requested=True)


def _accepted(row: Resource, answer: Accepted, ctx: Context, *, settled: bool) -> Resource:
    state = (
        ResourceState.DELETING if settled or row.state is ResourceState.DELETING else ResourceState.CREATED
    )
    return replace(
        row,
        state=state,
        operation=answer.operation,
        target_id=answer.target_id or row.target_id,
        created_at=ctx.now,
        confirmed_at=None if answer.operation else ctx.now,
        token=None,
        until=None,
    )

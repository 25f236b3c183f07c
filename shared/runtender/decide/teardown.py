"""Teardown: a row is gone only when it was seen gone. Every delete is repeated until then, and never hits a stranger.

Absent is not gone while a create may still land: a row whose create was never answered needs a delete and a 404 later
than the create grace after the last moment its create could have been sent (design 3).
"""

from __future__ import annotations

from dataclasses import replace

from runtender.decide.decision import (
    Context,
    Decision,
    Effect,
    KeepLogs,
    SendDelete,
    SendDeleteRemains,
    Tombstone,
    is_set,
    moved,
)
from runtender.decide.wake import next_wake
from runtender.model import (
    Cleanup,
    CleanupState,
    Job,
    Outcome,
    Phase,
    Resource,
    ResourceState,
    SubmitKind,
)
from runtender.observed import Absent, DeleteAnswer, LiveState, Present, Seen, Sight

# From the third refusal on somebody should look; until then it is ordinary noise.
_STUCK_AFTER = 3


def tear_down(job: Job, row: Resource | None, seen: Seen, ctx: Context) -> Decision:
    """Take the next step of removing a row, or come to rest when a settled job has none left."""
    if row is None:
        return Decision(job=_rest(job, ctx) if job.outcome is not None else job)
    if ctx.is_held(row):
        return Decision(job=job)
    row = replace(_read_operation(row, seen), state=ResourceState.DELETING, token=None, until=None)
    job = job.with_row(row)
    sight = seen.sights.get(row.nonce)
    if sight is None:
        return Decision(job=job)
    if isinstance(sight, Present) and ctx.owns(sight, job):
        return _remove(job, row, sight, ctx)
    remains = seen.remains.get(row.nonce)
    if remains:
        effects: tuple[Effect, ...] = () if _just_deleted(row, ctx) else (SendDeleteRemains(row.nonce),)
        return Decision(job=job, effects=effects)
    if remains is None and not row.refused:
        return Decision(job=job)
    if _may_still_land(row, sight, ctx):
        # A stranger's machine of the name is no reason to delete anything, only to wait.
        blind = isinstance(sight, Absent) and not row.delete_sent_at
        return Decision(job=job, effects=(SendDelete(row.nonce),) if blind else ())
    if _may_land_unseen(row) and row.nonce not in seen.markers:
        tombstone = Tombstone(nonce=row.nonce, reason=None, detail="the job is over")
        return Decision(job=job, tombstones=(tombstone,))
    job = job.with_row(replace(row, state=ResourceState.GONE))
    return Decision(job=_rest(job, ctx) if job.outcome is not None and not job.live else job)


def _read_operation(row: Resource, seen: Seen) -> Resource:
    operation = seen.operations.get(row.nonce)
    if operation is None or not operation.done:
        return row
    return replace(row, operation=None, refused=row.refused or operation.refusal is not None)


def _remove(job: Job, row: Resource, sight: Present, ctx: Context) -> Decision:
    if sight.state is LiveState.ENDING:
        # It is going by itself, or by an earlier delete; what is left of it then is removed at the next look.
        return Decision(job=job)
    if _just_deleted(row, ctx):
        return Decision(job=job)
    if not is_set(row):
        return Decision(job=job, effects=(SendDelete(row.nonce),))
    # A Job's delete names a UID: that of what is there, which an older or a late copy of the create may have made.
    job = job.with_row(replace(row, uid=sight.uid, target_id=sight.uid))
    # With a Job go its pods, and with them what they said: it is wanted wherever something went wrong, and of a task, whose
    # workers store nothing themselves.
    told = job.outcome is Outcome.SUCCEEDED and job.plan.kind is SubmitKind.FORECAST
    keep = row.delete_sent_at is None and not told
    logs: tuple[Effect, ...] = (KeepLogs(row.nonce),) if keep else ()
    return Decision(job=job, effects=(*logs, SendDelete(row.nonce)))


def _just_deleted(row: Resource, ctx: Context) -> bool:
    """True while an accepted delete deserves the time to take effect."""
    return row.delete_sent_at is not None and ctx.now - row.delete_sent_at < ctx.timing.teardown_backoff / 2


def _may_still_land(row: Resource, sight: Sight, ctx: Context) -> bool:
    """True while the create may yet take effect: its operation is open, or its answer never came and time is short."""
    if row.refused:
        return False
    if row.operation is not None:
        return True
    if row.created_at is not None:
        return False
    undeleted = isinstance(sight, Absent) and row.delete_sent_at is None
    # Whoever held the row could send its create until too little of the hold was left.
    last_send = (row.sent_at or row.since) + ctx.timing.hold - ctx.timing.create_margin
    return undeleted or ctx.now < last_send + ctx.timing.create_grace


def _may_land_unseen(row: Resource) -> bool:
    """True for a Job whose create was sent more than once: a copy that comes late must find that nothing is to be done.

    A machine's guest finds the terminal marker by which its job ended. A Job's end needs none.
    """
    return is_set(row) and not row.refused and row.sent_at not in {None, row.since}


def record_delete(job: Job, nonce: str, answer: DeleteAnswer, ctx: Context) -> Job:
    """Note the answer to a delete of the row's resource or of what it covers."""
    row = next((row for row in job.resources if row.nonce == nonce), None)
    if row is None or row.state is ResourceState.GONE:
        return job
    if answer.accepted or answer.gone:
        job = job.with_row(replace(row, delete_sent_at=ctx.now))
        return replace(job, wake_at=next_wake(job, ctx))
    tries = job.cleanup.tries + 1
    state = CleanupState.STUCK if tries >= _STUCK_AFTER else CleanupState.PENDING
    job = replace(job, cleanup=Cleanup(state=state, reason=answer.detail[:500], tries=tries))
    return replace(job, wake_at=next_wake(job, ctx))


def _rest(job: Job, ctx: Context) -> Job:
    """Everything was seen gone: nothing will wake this job again."""
    cleanup = replace(job.cleanup, state=CleanupState.DONE, reason="")
    return moved(job, ctx, "all resources gone", phase=Phase.DONE, cleanup=cleanup)

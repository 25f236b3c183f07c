"""Rules that hold after every step of a job with many workers, whatever state it is in and whatever is seen of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from runtender.decide import SendCreate, SendDelete
from runtender.model import Cells, Outcome, Phase, Reason, ResourceState, SubmitKind, Summary
from runtender.observed import (
    Absent,
    LiveState,
    MarkerPair,
    PodsSeen,
    Present,
    TroubleKind,
    WorkersVerdict,
)

SECONDS = st.sampled_from([0, 5, 60, 89, 90, 600, 1800, 2700, 3660, 4260, 4500, 86400])
REASONS = st.sampled_from([None, Reason.CANCELLED, Reason.RUN_TIMEOUT, Reason.JOB_DELETED, Reason.IMAGE_PULL])


@st.composite
def jobs(draw, many):
    """A job in any state that a row of kind Job can be in."""
    state = draw(st.sampled_from(list(ResourceState)[:3]))
    row = many.row(state=state, missing_since=draw(st.sampled_from([None, many.at(30)])))
    if state is not ResourceState.CREATED and draw(st.booleans()):
        row = replace(row, target_id=None, created_at=None, confirmed_at=None, refused=draw(st.booleans()))
    if state is ResourceState.INTENDED:
        row = replace(many.unanswered(refused=row.refused), until=draw(st.sampled_from([None, many.at(90)])))
    if state is ResourceState.DELETING:
        row = replace(row, delete_sent_at=draw(st.sampled_from([None, many.at(20)])))
    plan = many.plan(kind=draw(st.sampled_from(list(SubmitKind))))
    build = many.running if state is ResourceState.CREATED and draw(st.booleans()) else many.provisioning
    job = replace(build(row=row), plan=plan, cancel_requested=draw(st.booleans()))
    if state is not ResourceState.CREATED and draw(st.booleans()):
        job = replace(job, phase=Phase.STOPPING, outcome=Outcome.FAILED, reason=Reason.STALLED)
    return job


@st.composite
def worlds(draw, many, row):
    """Anything that can be seen at one moment; what is missing cannot be read."""
    ours = many.sight(row, draw(st.sampled_from(list(LiveState)[:3])))
    verdict = draw(st.sampled_from(list(WorkersVerdict)))
    ours = replace(ours, workers=many.workers(verdict, succeeded=draw(st.integers(0, 4)), failed_indexes="1"))
    sights = [ours, replace(ours, uid="uid-2"), replace(ours, nonce="f" * 16, uid="uid-2"), Absent()]
    sights += [
        replace(ours, uid="uid-2", plane="staging"),
        replace(ours, uid="uid-2", nonce="", key="", plane=""),
    ]
    words = [None, many.tombstone(draw(REASONS))]
    pods = [PodsSeen(), PodsSeen(scheduled_at=many.at(9), started_at=many.at(10))]
    pods += [many.waiting(kind) for kind in TroubleKind]
    there = {
        "markers": MarkerPair(
            started=draw(st.sampled_from([None, many.started()])), terminal=draw(st.sampled_from(words))
        ),
        "sight": draw(st.sampled_from(sights)),
        "summary": draw(st.sampled_from([None, Summary(n_cells=4, n_ok=4, n_error=0, complete=True)])),
        "pods": draw(st.sampled_from(pods)),
        "remains": draw(st.sampled_from([(), ("pods",)])),
        "cells": draw(st.sampled_from([Cells(), Cells(count=1, last_at=many.at(60))])),
    }
    unread = draw(st.sets(st.sampled_from(sorted(there))))
    return {name: seen for name, seen in there.items() if name not in unread or name == "markers"}


def test_the_rules_hold_after_every_step(many):
    @settings(max_examples=600)
    @given(st.data())
    def play(data):
        job = data.draw(jobs(many))
        row = job.resources[0]
        there = data.draw(worlds(many, row))
        at = data.draw(SECONDS)
        step = many.step(job, at, thorough=data.draw(st.booleans()), **there)
        _check_wake(many, job, step, at)
        _check_end(job, step, there)
        _check_calls(job, step, there)

    play()


def _check_wake(many, job, step, at):
    """I7: whatever event is lost, the job is looked at again before long; only at rest it is not."""
    after = step.job
    assert (after.wake_at is None) == (after.phase is Phase.DONE)
    moved = after != job
    if moved and after.wake_at is not None:
        assert many.at(at) <= after.wake_at <= many.at(at) + timedelta(seconds=660)


def _check_end(job, step, there):
    """I4, and that nothing but what the row's own create made can end well."""
    after, sight = step.job, there.get("sight")
    if job.outcome is not None:
        assert (after.outcome, after.reason, after.detail) == (job.outcome, job.reason, job.detail)
        return
    row = job.resources[0]
    own = isinstance(sight, Present) and (sight.uid, sight.nonce, sight.plane) == (
        row.target_id or sight.uid,
        row.nonce,
        "main",
    )
    if after.outcome in {Outcome.SUCCEEDED, Outcome.PARTIAL}:
        finished = own and sight.workers.verdict is not WorkersVerdict.RUNNING
        delivered = after.reason is Reason.SETTLED_BY_SUMMARY and there.get("summary") is not None
        assert finished or delivered
        assert job.plan.kind is SubmitKind.TASK or "summary" in there
    if after.outcome is not None:
        assert after.phase in {Phase.STOPPING, Phase.DONE}
        assert len(after.history) > len(job.history), "I5: each transition has its row"


def _check_calls(job, step, there):
    """I6, and that nothing is made beside what may be alive."""
    sight, effects = there.get("sight"), step.decision.effects
    if any(isinstance(effect, SendDelete) for effect in effects):
        assert job.resources[0].state is not ResourceState.CREATED
        foreign = isinstance(sight, Present) and (sight.plane, sight.key) != ("main", job.key)
        assert not foreign
        if isinstance(sight, Present):
            assert step.job.resources[0].target_id == sight.uid
    if any(isinstance(effect, SendCreate) for effect in effects):
        assert step.job.outcome is None
        assert sight is not None
        assert not isinstance(sight, Present) or sight.plane != "main" or sight.key != job.key
        live = [row for row in step.job.resources if row.state is not ResourceState.GONE]
        assert len(live) == 1
    if step.job.phase is Phase.DONE:
        assert job.resources[0].refused or there.get("remains") == ()
        assert not isinstance(sight, Present) or sight.plane != "main" or sight.key != job.key

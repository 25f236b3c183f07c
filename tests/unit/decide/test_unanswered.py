"""A create that got no answer may still land, whatever its repeats are told; a placement given up must not start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.decide import SendCreate, decide, record_create
from runtender.model import Outcome, Phase, ResourceState, Scope, Verdict
from runtender.observed import Absent, Fate, LiveState, MarkerPair, Refusal, Seen


def refusal(verdict, **changes):
    return Refusal(verdict=verdict, scope=Scope.ZONE, code="CODE", message="no", **changes)


def intended(a, **row):
    """A create that was sent at 0 and once more at 100."""
    unanswered = {
        "created_at": None,
        "confirmed_at": None,
        "target_id": None,
        "state": ResourceState.INTENDED,
    }
    row = a.row(**{**unanswered, "sent_at": a.at(100), "until": a.at(190), "token": "me", **row})
    return a.job(phase=Phase.PROVISIONING, resources=(row,))


def unread(job):
    return {"markers": {job.resources[0].nonce: MarkerPair()}}


@pytest.mark.parametrize("verdict", [Verdict.TRANSIENT_CAPACITY, Verdict.HARD_CEILING])
def test_no_capacity_for_a_repeat_gives_the_placement_up_but_not_for_refused(a, verdict):
    job = intended(a)
    after = record_create(job, job.resources[0].nonce, refusal(verdict), a.ctx(101))
    assert (after.resources[0].state, after.resources[0].refused) == (ResourceState.DELETING, False)
    assert after.walk.attempts == 1


@pytest.mark.parametrize("verdict", [Verdict.CONFIG_FAULT, Verdict.RATE_LIMITED, Verdict.RETRY])
def test_another_refusal_of_a_repeat_says_nothing_of_the_first_copy(a, verdict):
    job = intended(a)
    after = record_create(job, job.resources[0].nonce, refusal(verdict, retry_after_s=45), a.ctx(101))
    assert (after.outcome, after.resources[0].state) == (None, ResourceState.INTENDED)
    assert after.resources[0].until == a.at(101 + 45)
    again = decide(after, Seen(sights={after.resources[0].nonce: Absent()}, **unread(after)), a.ctx(147))
    assert again.effects == (SendCreate(after.resources[0].nonce),)


def test_a_refused_repeat_after_the_end_leaves_the_grace_to_the_first_copy(a):
    job = replace(intended(a), phase=Phase.STOPPING, outcome=Outcome.CANCELLED)
    after = record_create(job, job.resources[0].nonce, refusal(Verdict.CONFIG_FAULT), a.ctx(101))
    assert (after.resources[0].state, after.resources[0].refused) == (ResourceState.DELETING, False)


def test_a_first_refusal_is_definite(a):
    job = intended(a, sent_at=a.at(0))
    after = record_create(job, job.resources[0].nonce, refusal(Verdict.TRANSIENT_CAPACITY), a.ctx(1))
    assert after.resources[0].refused


def test_an_abandoned_placement_is_disarmed_before_anything_else(a):
    job = intended(a, state=ResourceState.DELETING, until=None, token=None)
    decision = decide(job, Seen(sights={job.resources[0].nonce: Absent()}, **unread(job)), a.ctx(300))
    (tombstone,) = decision.tombstones
    assert (tombstone.nonce, tombstone.reason) == (job.resources[0].nonce, None)


def test_a_machine_that_appears_after_its_placement_was_given_up_is_not_adopted(a):
    job = intended(a)
    nonce = job.resources[0].nonce
    disarmed = MarkerPair(terminal=a.tombstone(None), terminal_stored=True)
    there = Seen(markers={nonce: disarmed}, sights={nonce: a.sight(job.resources[0])})
    after = decide(job, there, a.ctx(700)).job
    assert (after.resources[0].state, after.walk.attempts) == (ResourceState.DELETING, 1)


def test_a_disarmed_machine_that_never_spoke_makes_room_for_the_next_placement(a):
    job = a.provisioning()
    nonce = job.resources[0].nonce
    disarmed = MarkerPair(terminal=a.tombstone(None), terminal_stored=True)
    gone = Seen(markers={nonce: disarmed}, sights={nonce: Absent()}, fates={nonce: Fate()})
    after = decide(job, gone, a.ctx(120)).job
    assert (after.outcome, after.resources[0].state) == (None, ResourceState.DELETING)
    assert after.walk.attempts == 1


def test_a_disarmed_machine_that_works_already_goes_on(a):
    job = a.running()
    nonce = job.resources[0].nonce
    disarmed = MarkerPair(started=a.started(), terminal=a.tombstone(None), terminal_stored=True)
    working = Seen(markers={nonce: disarmed}, sights={nonce: a.sight(job.resources[0], LiveState.RUNNING)})
    assert decide(job, working, a.ctx(120)).job.resources[0].state is ResourceState.CREATED

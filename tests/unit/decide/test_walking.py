"""The walk over placements: one at a time, remembered in the job, bounded."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runtender.decide import SendCreate, SendDelete, Tombstone, decide, record_create
from runtender.model import (
    Outcome,
    Phase,
    Reason,
    ResourceState,
    Scope,
    Verdict,
    WalkPolicy,
)
from runtender.observed import (
    Absent,
    Accepted,
    LiveState,
    MarkerPair,
    NameTaken,
    OperationSeen,
    Refusal,
    Seen,
    Unclear,
)


def refusal(verdict=Verdict.TRANSIENT_CAPACITY, scope=Scope.ZONE, **changes):
    return Refusal(verdict=verdict, scope=scope, code="CODE", message="words", **changes)


def intended(a, **changes):
    fields = {"state": ResourceState.INTENDED, "created_at": None, "confirmed_at": None, "target_id": None}
    return a.row(**{**fields, "token": "me", "until": a.at(90), **changes})


def gone(a, job, at):
    """The refused row is seen absent."""
    nonce = job.live[-1].nonce
    return decide(job, Seen(markers={nonce: MarkerPair()}, sights={nonce: Absent()}), a.ctx(at))


def walk_through(a, job, answers, *, at=0.0, step=1.0):
    """Answer each create in turn; return the job and the zones that were tried, with their moments."""
    tried: list[tuple[str, float]] = []
    for answer in answers:
        decision = decide(job, Seen(), a.ctx(at))
        while not decision.effects and decision.job.outcome is None:
            at = (decision.job.walk.resume_at - a.t0).total_seconds()
            decision = decide(decision.job, Seen(), a.ctx(at))
        if decision.job.outcome is not None:
            return decision.job, tried
        job = decision.job
        row = job.live[-1]
        tried.append((row.location[-1], at))
        job = record_create(job, row.nonce, answer, a.ctx(at))
        if job.live and job.live[-1].state is ResourceState.DELETING and job.outcome is None:
            job = replace(job, resources=tuple(replace(r, state=ResourceState.GONE) for r in job.resources))
        at += step
    return job, tried


def test_the_intent_is_saved_before_the_create_is_sent(a):
    decision = decide(a.job(), Seen(), a.ctx(5))
    (row,) = decision.job.resources
    assert (row.state, row.token, row.until) == (ResourceState.INTENDED, "me", a.at(95))
    assert decision.effects == (SendCreate(row.nonce),)
    assert decision.job.phase is Phase.PROVISIONING
    assert decision.job.wake_at == row.until


def test_the_next_row_waits_until_the_last_is_seen_gone(a):
    job = record_create(a.provisioning(row=intended(a)), intended(a).nonce, refusal(), a.ctx(1))
    nonce = job.live[-1].nonce
    unseen = decide(job, Seen(), a.ctx(2))
    assert unseen.effects == ()
    assert len(unseen.job.resources) == 1
    seen = decide(job, Seen(sights={nonce: Absent()}), a.ctx(2))
    assert [row.state for row in seen.job.resources] == [ResourceState.GONE, ResourceState.INTENDED]
    assert seen.job.resources[1].location == "us-central1-b"
    assert seen.job.resources[1].nonce != nonce
    assert seen.job.resources[1].request_id != job.resources[0].request_id


def test_all_zones_are_tried_before_any_wait_then_from_the_front_again(a):
    job, tried = walk_through(a, a.job(), [refusal()] * 3 + [Accepted(operation="op")])
    assert tried == [("a", 0), ("b", 1), ("c", 2), ("a", 3 + 45)]
    assert job.live[-1].state is ResourceState.CREATED


def test_waiting_between_passes_is_told_as_such(a):
    job, _ = walk_through(a, a.job(), [refusal()] * 3)
    decision = decide(job, Seen(), a.ctx(10))
    assert decision.job.phase is Phase.AWAITING_CAPACITY
    assert (decision.job.walk.resume_at, decision.job.wake_at) == (a.at(10 + 45), a.at(10 + 45))
    early = decide(decision.job, Seen(), a.ctx(20, thorough=False))
    assert early.effects == ()


def test_a_hard_ceiling_is_not_tried_again_while_it_is_blocked(a):
    answers = [refusal(Verdict.HARD_CEILING), refusal(), refusal(), refusal(), refusal()]
    _, tried = walk_through(a, a.job(), answers)
    assert [zone for zone, _ in tried] == ["a", "b", "c", "b", "c"]


def test_a_ceiling_of_the_region_drops_all_its_zones(a):
    job, tried = walk_through(a, a.job(), [refusal(Verdict.HARD_CEILING, Scope.REGION)])
    ended = decide(job, Seen(), a.ctx(2)).job
    assert [zone for zone, _ in tried] == ["a"]
    assert (ended.outcome, ended.reason) == (Outcome.NO_CAPACITY, Reason.CAPACITY_EXHAUSTED)
    assert ended.walk.exhausted


def test_a_config_fault_ends_the_job_with_the_apis_words(a):
    job, _ = walk_through(a, a.job(), [refusal(Verdict.CONFIG_FAULT)])
    assert (job.outcome, job.reason) == (Outcome.FAILED, Reason.CONFIG_FAULT)
    assert "words" in job.detail


@pytest.mark.parametrize("verdict", [Verdict.RATE_LIMITED, Verdict.RETRY])
def test_a_busy_answer_waits_on_the_same_placement_and_charges_nothing(a, verdict):
    job, tried = walk_through(a, a.job(), [refusal(verdict), refusal(verdict), Accepted()])
    assert [zone for zone, _ in tried] == ["a", "a", "a"]
    assert [at for _, at in tried] == [0, 30, 30 + 60]
    assert job.walk.attempts == 0
    assert len({row.nonce for row in job.resources}) == 3, "each try has a nonce of its own"


def test_a_told_wait_is_kept(a):
    _, tried = walk_through(a, a.job(), [refusal(Verdict.RATE_LIMITED, retry_after_s=120), Accepted()])
    assert [at for _, at in tried] == [0, 120]


def test_recommended_zones_come_first(a):
    _, tried = walk_through(a, a.job(), [refusal(zones_available=("us-central1-c",)), refusal()])
    assert [zone for zone, _ in tried] == ["a", "c"]


def test_attempts_are_bounded(a):
    job = a.job(plan=a.plan(walk=WalkPolicy(max_attempts=4)))
    job, tried = walk_through(a, job, [refusal()] * 9)
    assert len(tried) == 4
    assert (job.outcome, job.reason) == (Outcome.NO_CAPACITY, Reason.CAPACITY_EXHAUSTED)


def test_one_pass_never_waits(a):
    job = a.job(plan=a.plan(walk=WalkPolicy(max_passes=1)))
    job, tried = walk_through(a, job, [refusal()] * 9)
    assert tried == [("a", 0), ("b", 1), ("c", 2)]
    assert job.reason is Reason.CAPACITY_EXHAUSTED


def test_the_capacity_deadline_ends_the_search(a):
    plan = a.plan(walk=WalkPolicy(max_attempts=0, max_wall=timedelta()), capacity_wait=timedelta(minutes=5))
    job, tried = walk_through(a, a.job(plan=plan), [refusal()] * 99)
    assert (job.outcome, job.reason) == (Outcome.NO_CAPACITY, Reason.CAPACITY_TIMEOUT)
    assert all(at < 300 for _, at in tried)


def test_the_capacity_deadline_does_not_touch_a_confirmed_placement(a):
    job = a.provisioning()
    seen = Seen(
        markers={job.resources[0].nonce: MarkerPair()},
        sights={job.resources[0].nonce: a.sight(job.resources[0])},
    )
    later = replace(job, deadlines=replace(job.deadlines, boot=a.at(9999)))
    assert decide(later, seen, a.ctx(2701)).job.outcome is None


class TestUnanswered:
    """A create whose answer never came."""

    def test_a_held_row_is_left_to_its_holder(self, a):
        row = intended(a, token="other")
        decision = decide(a.provisioning(row=row), Seen(markers={row.nonce: MarkerPair()}), a.ctx(89))
        assert decision.effects == ()
        assert decision.job.resources == (row,)

    def test_our_own_machine_is_adopted(self, a):
        row = intended(a)
        seen = Seen(markers={row.nonce: MarkerPair()}, sights={row.nonce: a.sight(row)})
        adopted = decide(a.provisioning(row=row), seen, a.ctx(91)).job
        assert adopted.resources[0].state is ResourceState.CREATED
        assert adopted.resources[0].target_id == "77"
        assert adopted.deadlines.boot == a.at(91 + 1800)

    def test_absent_and_young_is_sent_again_with_the_same_request_id(self, a):
        row = intended(a, token="other")
        seen = Seen(markers={row.nonce: MarkerPair()}, sights={row.nonce: Absent()})
        decision = decide(a.provisioning(row=row), seen, a.ctx(91))
        (held,) = decision.job.resources
        assert decision.effects == (SendCreate(row.nonce),)
        assert (held.request_id, held.token, held.until) == (row.request_id, "me", a.at(91 + 90))

    def test_absent_and_old_is_disarmed_then_deleted_then_left(self, a):
        row = intended(a, token="other")
        seen = Seen(markers={row.nonce: MarkerPair()}, sights={row.nonce: Absent()})
        first = decide(a.provisioning(row=row), seen, a.ctx(601))
        assert [t.reason for t in first.tombstones] == [None]
        pair = MarkerPair(terminal=a.tombstone(None), terminal_stored=True)
        disarmed = replace(seen, markers={row.nonce: pair})
        second = decide(a.provisioning(row=row), disarmed, a.ctx(601)).job
        assert second.resources[0].state is ResourceState.DELETING
        assert second.walk.attempts == 1
        third = decide(second, replace(disarmed, remains={row.nonce: ()}), a.ctx(602))
        assert third.effects == (SendDelete(row.nonce),), "absent is not gone while a create may still land"
        assert len(third.job.resources) == 1

    def test_a_strangers_machine_is_named_and_left_alone(self, a):
        row = intended(a, refused=True)
        stranger = replace(a.sight(row), nonce="", key="", plane="", uid="999")
        decision = decide(a.provisioning(row=row), Seen(sights={row.nonce: stranger}), a.ctx(91))
        assert decision.job.reason is Reason.CONFIG_FAULT
        assert "999" in decision.job.detail
        torn = decide(decision.job, Seen(sights={row.nonce: stranger}), a.ctx(92))
        assert torn.effects == ()
        assert torn.job.phase is Phase.DONE

    def test_another_planes_machine_is_a_strangers(self, a):
        row = intended(a, refused=True)
        other = replace(a.sight(row), plane="staging")
        decision = decide(a.provisioning(row=row), Seen(sights={row.nonce: other}), a.ctx(91))
        assert decision.job.reason is Reason.CONFIG_FAULT

    def test_an_older_placement_under_our_name_is_removed_then_the_same_place_tried(self, a):
        row = intended(a, refused=True)
        older = a.sight(row, nonce="0" * 16)
        job = decide(a.provisioning(row=row), Seen(sights={row.nonce: older}), a.ctx(91)).job
        assert decide(job, Seen(sights={row.nonce: older}), a.ctx(92)).effects == (SendDelete(row.nonce),)
        again = decide(job, Seen(sights={row.nonce: Absent()}), a.ctx(150)).job
        assert again.resources[-1].location == row.location
        assert again.resources[-1].try_number == 1


class TestAnswers:
    def test_a_first_409_is_a_definite_no(self, a):
        row = intended(a)
        job = record_create(a.provisioning(row=row), row.nonce, NameTaken(), a.ctx(1))
        assert job.resources[0].refused
        assert job.resources[0].until == a.at(1)

    def test_a_409_to_a_repeated_create_may_be_our_own_first(self, a):
        row = intended(a, sent_at=a.at(100))
        job = record_create(a.provisioning(row=row), row.nonce, NameTaken(), a.ctx(101))
        assert not job.resources[0].refused

    def test_no_answer_is_looked_up_before_anything_else(self, a):
        row = intended(a)
        job = record_create(a.provisioning(row=row), row.nonce, Unclear(detail="timeout"), a.ctx(30))
        assert job.resources[0].state is ResourceState.INTENDED
        assert job.wake_at == a.at(30 + 15)

    def test_an_accepted_create_of_a_settled_job_goes_to_teardown(self, a):
        row = intended(a)
        job = replace(a.provisioning(row=row), outcome=Outcome.CANCELLED, phase=Phase.STOPPING)
        after = record_create(job, row.nonce, Accepted(operation="op", target_id="5"), a.ctx(20))
        assert after.resources[0].state is ResourceState.DELETING
        assert after.outcome is Outcome.CANCELLED

    def test_an_operation_that_fails_moves_the_walk_on(self, a):
        row = a.row(operation="op", confirmed_at=None)
        seen = Seen(
            markers={row.nonce: MarkerPair()},
            operations={row.nonce: OperationSeen(done=True, refusal=refusal())},
        )
        decision = decide(a.provisioning(row=row), seen, a.ctx(10))
        assert decision.job.walk.attempts == 1
        assert decision.job.resources[0].refused
        assert decision.more

    def test_a_finished_operation_sets_the_boot_deadline(self, a):
        row = a.row(operation="op", confirmed_at=None)
        seen = Seen(markers={row.nonce: MarkerPair()}, operations={row.nonce: OperationSeen(done=True)})
        decision = decide(a.provisioning(row=row), seen, a.ctx(10))
        assert decision.job.deadlines.boot == a.at(1810)
        assert decision.job.resources[0].operation is None

    def test_drivers_get_a_quarter_of_an_hour_at_least(self, a):
        row = a.row(operation="op", confirmed_at=None)
        job = a.provisioning(row=row, plan=a.plan(hardware="gpu"))
        short = replace(a.ctx(10).timing, boot_limit=timedelta(seconds=60))
        seen = Seen(markers={row.nonce: MarkerPair()}, operations={row.nonce: OperationSeen(done=True)})
        assert decide(job, seen, a.ctx(10, timing=short)).job.deadlines.boot == a.at(10 + 900)


def test_a_started_marker_starts_the_run_clock_at_the_servers_time(a):
    job = a.provisioning()
    row = job.resources[0]
    seen = Seen(markers={row.nonce: MarkerPair(started=a.started(60))})
    running = decide(job, seen, a.ctx(75)).job
    assert (running.phase, running.started_at) == (Phase.RUNNING, a.at(60))
    assert running.deadlines.run == a.at(60 + 3600)


def test_a_stale_look_of_an_ended_machine_does_not_undo_the_start(a):
    job = a.running()
    row = job.resources[0]
    seen = Seen(
        markers={row.nonce: MarkerPair(started=a.started())},
        sights={row.nonce: a.sight(row, LiveState.ENDING)},
    )
    assert decide(job, seen, a.ctx(90)).job.phase is Phase.RUNNING


def test_a_name_held_by_an_older_placement_disarms_an_unanswered_create_first(a):
    row = intended(a)
    older = a.sight(row, nonce="0" * 16)
    seen = Seen(markers={row.nonce: MarkerPair()}, sights={row.nonce: older})
    decision = decide(a.provisioning(row=row), seen, a.ctx(91))
    assert decision.tombstones == (Tombstone(nonce=row.nonce, reason=None, detail="name taken"),)

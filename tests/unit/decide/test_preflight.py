"""Quota is looked at before each pass: what has no room is not called, and where nothing has, nobody waits unasked."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runtender.decide import Look, LookKind, SendCreate, decide, record_create, wanted
from runtender.model import (
    Block,
    Outcome,
    Phase,
    Placement,
    Reason,
    ResourceState,
    Scope,
    Verdict,
    WalkPolicy,
)
from runtender.observed import Reading, Refusal, Seen

ASKS = (Look(LookKind.SHORTAGES, ""), Look(LookKind.QUOTA, ""))
FULL, ROOM = {"N2_CPUS": Reading(limit=24, usage=24)}, {"N2_CPUS": Reading(limit=24, usage=8)}
TWO_REGIONS = tuple(
    Placement(region=region, zone=f"{region}-{letter}") for region in ("us-x1", "us-x2") for letter in "ab"
)


@pytest.fixture
def job(a):
    def make(placements=TWO_REGIONS, **policy):
        return a.job(plan=a.plan(vcpus=8, placements=placements, walk=WalkPolicy(**policy)))

    return make


def zones(job):
    return [job.plan.placements[index].zone for index in job.walk.order]


@pytest.mark.parametrize((), [pytest.param(id="acceptance-G15")])
def test_a_region_without_room_is_left_out_and_the_others_keep_their_order(a, job):
    decision = decide(job(), Seen(quota={"us-x1": FULL, "us-x2": ROOM}), a.ctx())
    assert zones(decision.job) == ["us-x2-a", "us-x2-b"]
    assert isinstance(decision.effects[0], SendCreate)
    assert [entry["region"] for entry in decision.job.walk.preflight] == ["us-x1"]
    assert (decision.job.walk.attempts, decision.job.walk.ledger) == (0, ()), "nobody was refused"


@pytest.mark.parametrize(
    "quota", [{}, {"us-x1": {}}, {"us-x1": ROOM}], ids=["nothing read", "no meters", "one region read"]
)
def test_what_is_not_known_blocks_nothing(a, job, quota):
    decision = decide(job(), Seen(quota=quota), a.ctx())
    assert zones(decision.job) == [placement.zone for placement in TWO_REGIONS]
    assert (len(decision.effects), decision.job.walk.preflight) == (1, ())


def test_without_quota_anywhere_it_ends_at_once_and_says_why(a, job):
    decision = decide(job(), Seen(quota={"us-x1": FULL, "us-x2": FULL}), a.ctx())
    assert (decision.job.outcome, decision.job.reason) == (Outcome.NO_CAPACITY, Reason.QUOTA_BLOCKED)
    assert "N2_CPUS in us-x2: 8 needed, 0 of 24 vCPUs free" in decision.job.detail
    assert "wait until less of N2_CPUS is in use" in decision.job.detail
    assert (decision.effects, decision.job.resources) == ((), ())


def test_a_quota_over_all_regions_blocks_them_all(a, job):
    everywhere = {"CPUS_ALL_REGIONS": Reading(limit=0, usage=0)}
    decision = decide(job(), Seen(quota={"us-x1": everywhere, "us-x2": everywhere}), a.ctx())
    assert decision.job.reason is Reason.QUOTA_BLOCKED


def test_asked_to_it_waits_for_quota_and_looks_again_after_each_rest(a, job):
    waiting = decide(job(wait_for_quota=True), Seen(quota={"us-x1": FULL, "us-x2": FULL}), a.ctx()).job
    assert (waiting.phase, waiting.outcome) == (Phase.AWAITING_CAPACITY, None)
    assert waiting.walk.resume_at == a.at(45)
    assert "0 of 24 vCPUs free" in waiting.history[-1].detail
    again = decide(waiting, Seen(quota={"us-x1": FULL, "us-x2": FULL}), a.ctx(45)).job
    assert again.walk.resume_at == a.at(45 + 90)
    placed = decide(again, Seen(quota={"us-x1": ROOM, "us-x2": FULL}), a.ctx(45 + 90))
    assert (placed.job.phase, placed.job.resources[0].location) == (Phase.PROVISIONING, "us-x1-a")
    assert (placed.job.walk.quota_waits, placed.job.walk.attempts) == (0, 0)


def test_waiting_for_quota_ends_with_the_capacity_wait(a, job):
    waiting = decide(job(wait_for_quota=True), Seen(quota={"us-x1": FULL, "us-x2": FULL}), a.ctx()).job
    ended = decide(waiting, Seen(), a.ctx(45 * 60)).job
    assert (ended.outcome, ended.reason) == (Outcome.NO_CAPACITY, Reason.CAPACITY_TIMEOUT)


def test_a_region_that_was_refused_and_one_without_quota_leave_nothing(a, job):
    first = decide(job(), Seen(quota={}), a.ctx()).job
    ceiling = Refusal(verdict=Verdict.HARD_CEILING, scope=Scope.REGION, code="Q", message="no")
    refused = record_create(first, first.live[-1].nonce, ceiling, a.ctx())
    gone = tuple(replace(row, state=ResourceState.GONE) for row in refused.resources)
    next_pass = replace(refused, resources=gone, walk=replace(refused.walk, order=(), next=0))
    ended = decide(next_pass, Seen(quota={"us-x2": FULL}), a.ctx(60)).job
    assert ended.reason is Reason.QUOTA_BLOCKED


@pytest.mark.parametrize(
    ("short", "order"),
    [
        pytest.param([(Scope.ZONE, "us-x1-a")], ["us-x1-b", "us-x2-a", "us-x2-b", "us-x1-a"], id="a zone"),
        pytest.param(
            [(Scope.REGION, "us-x1")], ["us-x2-a", "us-x2-b", "us-x1-a", "us-x1-b"], id="a whole region"
        ),
        pytest.param([(Scope.ZONE, "us-x9-a")], [p.zone for p in TWO_REGIONS], id="a place nobody wants"),
    ],
)
def test_what_lately_had_no_room_for_others_is_tried_last(a, job, short, order):
    blocks = tuple(Block(scope=scope, name=name, until=a.at(600)) for scope, name in short)
    decision = decide(job(), Seen(quota={}, short=blocks), a.ctx())
    assert zones(decision.job) == order
    assert decision.job.resources[0].location == order[0]


class TestWhenItIsAskedFor:
    def test_before_the_first_placement(self, a, job):
        assert wanted(job(), Seen(), a.ctx()) == ASKS
        assert wanted(job(), Seen(quota={}), a.ctx()) == ASKS[:1]
        assert wanted(job(), Seen(quota={}, short=()), a.ctx()) == ()

    def test_only_shortages_where_the_config_wants_no_preflight(self, a, job):
        assert wanted(job(preflight=False), Seen(), a.ctx()) == ASKS[:1]

    def test_not_in_the_middle_of_a_pass(self, a, job):
        placed = decide(job(), Seen(quota={}), a.ctx()).job
        between = replace(placed, resources=(replace(placed.resources[0], state=ResourceState.GONE),))
        assert wanted(between, Seen(), a.ctx(1)) == ()

    @pytest.mark.parametrize(
        "why",
        ["the rest between passes", "a cancel", "the end of the capacity wait", "the bounds"],
    )
    def test_not_when_nothing_will_be_placed(self, a, job, why):
        base, at = job(), 0
        match why:
            case "the rest between passes":
                base = replace(base, walk=replace(base.walk, resume_at=a.at(10)))
            case "a cancel":
                base = replace(base, cancel_requested=True)
            case "the end of the capacity wait":
                base = replace(base, deadlines=replace(base.deadlines, capacity=a.t0 - timedelta(seconds=1)))
            case _:
                base = replace(base, walk=replace(base.walk, attempts=8))
        assert wanted(base, Seen(), a.ctx(at)) == ()

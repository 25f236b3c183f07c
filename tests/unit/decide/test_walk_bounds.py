"""Whatever the clouds answer, a walk keeps its bounds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtender.decide import decide, record_create
from runtender.model import Placement, ResourceState, Scope, Verdict, WalkPolicy
from runtender.observed import Reading, Refusal, Seen

ZONES = tuple(
    Placement(region=region, zone=f"{region}-{letter}") for region in ("us-x1", "us-x2") for letter in "ab"
)
REFUSALS = st.builds(
    Refusal,
    verdict=st.sampled_from(
        [Verdict.TRANSIENT_CAPACITY, Verdict.HARD_CEILING, Verdict.RATE_LIMITED, Verdict.RETRY]
    ),
    scope=st.sampled_from(list(Scope)),
    code=st.just("CODE"),
    message=st.just("words"),
    retry_after_s=st.none() | st.floats(0, 500),
    zones_available=st.just(()) | st.just(("us-x2-b",)),
)
POLICIES = st.builds(
    WalkPolicy,
    max_attempts=st.integers(1, 6),
    max_wall=st.integers(60, 4000).map(lambda seconds: timedelta(seconds=seconds)),
    max_passes=st.integers(0, 3),
)
READINGS = st.sampled_from(
    [{}, {"N2_CPUS": Reading(limit=8, usage=0)}, {"N2_CPUS": Reading(limit=8, usage=8)}]
)
QUOTA = st.fixed_dictionaries({"us-x1": READINGS, "us-x2": READINGS})


class Walked:
    """One walk to its end, answered by what was drawn; every bound is checked at each step."""

    def __init__(self, a, policy):
        self.a = a
        plan = a.plan(vcpus=8, placements=ZONES, walk=policy, capacity_wait=timedelta(hours=1))
        self.job = a.job(plan=plan)
        self.now = a.t0
        self.dropped: list[tuple[Scope, str, object]] = []

    def step(self, quota):
        before = self.job
        decision = decide(
            self.job, Seen(quota=quota, short=()), self.a.ctx((self.now - self.a.t0).total_seconds())
        )
        self.job = decision.job
        assert len(self.job.live) <= 1, "one placement at a time"
        if decision.effects:
            self._begun(before, quota)
        return bool(decision.effects)

    def _begun(self, before, quota):
        policy, place = self.job.plan.walk, self.job.live[-1].location
        region = place.rpartition("-")[0]
        assert before.walk.attempts < policy.max_attempts
        assert self.now - before.accepted_at < policy.max_wall
        assert not policy.max_passes or before.walk.passes < policy.max_passes
        names = {Scope.ZONE: place, Scope.REGION: region, Scope.PROJECT: "project"}
        still = [(scope, name) for scope, name, until in self.dropped if until > self.now]
        assert (Scope.PROJECT, "project") not in still
        assert all(names[scope] != name for scope, name in still), "a dropped scope is not tried"
        if not before.walk.order:
            room = quota[region].get("N2_CPUS", Reading())
            assert room.usage != 8, "nor is a region without quota"

    def refuse(self, refusal):
        row = self.job.live[-1]
        self.job = record_create(
            self.job, row.nonce, refusal, self.a.ctx((self.now - self.a.t0).total_seconds())
        )
        if refusal.verdict is Verdict.HARD_CEILING:
            place = row.location
            name = {Scope.ZONE: place, Scope.REGION: place.rpartition("-")[0]}.get(refusal.scope, "project")
            self.dropped.append((refusal.scope, name, self.now + timedelta(seconds=1200)))
        gone = tuple(replace(one, state=ResourceState.GONE) for one in self.job.resources)
        self.job = replace(self.job, resources=gone)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), policy=POLICIES)
def test_a_walk_keeps_its_bounds_and_ends(a, data, policy):
    # The builders hold nothing that an example could leave behind.
    walk = Walked(a, policy)
    for _ in range(400):
        if walk.job.outcome is not None:
            break
        if walk.step(data.draw(QUOTA)):
            walk.refuse(data.draw(REFUSALS))
        walk.now = max(walk.now + timedelta(seconds=1), walk.job.walk.resume_at or walk.now)
    assert walk.job.outcome is not None, "it ends"
    assert walk.job.walk.attempts == sum(
        entry.verdict in {Verdict.TRANSIENT_CAPACITY, Verdict.HARD_CEILING} for entry in walk.job.walk.ledger
    )

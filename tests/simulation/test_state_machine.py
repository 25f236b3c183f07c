"""Hypothesis makes the story up, step by step, and makes it short again when a rule breaks."""

from __future__ import annotations

from datetime import timedelta

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runtender.local.compute.instances import Status
from runtender.local.simulation.guests import Behaviour, Death
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.weather import (
    BROKEN_OFF,
    DELETE,
    FLEET,
    FORBIDDEN,
    GET,
    INSERT,
    INTERNAL,
    NAME_TAKEN,
    RATE,
    TOO_MANY,
    UNAVAILABLE,
    UPLOAD,
    CommitFault,
)
from runtender.local.simulation.world import CONFIG, World

ZONES = [f"us-central1-{letter}" for letter in "abcf"]
TASK = {"name": "chore", "image": "us-docker.pkg.dev/p/r/task:1", "command": ["true"]}
CONFIGS = [{"config": CONFIG}, {"config": TASK, "kind": "task"}]
METHODS = [INSERT, DELETE, GET, FLEET, "compute.zoneOperations.get", "storage.objects.list", UPLOAD]
ANSWERS = [BROKEN_OFF, INTERNAL, UNAVAILABLE, TOO_MANY, RATE, FORBIDDEN]
BEHAVIOURS = [
    Behaviour(),
    Behaviour(work_s=30, exit_code=3),
    Behaviour(cells_failed=1),
    Behaviour(boots=False),
    Behaviour(pulls=False, boot_s=1),
    *(Behaviour(dies=death) for death in Death),
]
spans = st.sampled_from([1, 5, 20, 61, 150, 700]).map(lambda seconds: timedelta(seconds=seconds))
fates = st.one_of(
    st.just(Fate()),
    st.builds(Fate, kill_at=st.integers(0, 60)),
    st.builds(Fate, freeze_at=st.integers(0, 30).map(lambda call: 2 * call + 1), freeze_for=spans),
    st.builds(Fate, skew=st.sampled_from([timedelta(seconds=-5), timedelta(seconds=5)])),
)
indexes = st.integers(0, 7)


class Plane(RuleBasedStateMachine):
    """One world under whatever hypothesis thinks of."""

    def __init__(self):
        super().__init__()
        self.behaviour = BEHAVIOURS[0]
        self.world = World(behaviour=lambda _booted: self.behaviour)

    @rule(
        message=st.sampled_from(CONFIGS),
        force=st.booleans(),
        request=st.sampled_from(["one", "two", "three"]),
    )
    def submit(self, message, force, request):
        self.world.submit(**message, force=force, request_id=request)

    @precondition(lambda self: self.world.jobs)
    @rule(index=indexes)
    def cancel(self, index):
        runs = sorted(self.world.cloud.onlooker.runs)
        self.world.cancel(runs[index % len(runs)])

    @rule()
    def tick(self):
        self.world.tick()

    @precondition(lambda self: self.world.due())
    @rule(index=indexes, fate=fates)
    def deliver(self, index, fate):
        due = self.world.due()
        self.world.deliver(due[index % len(due)], fate)

    @rule(span=spans)
    def let_time_pass(self, span):
        self.world.cloud.pass_time(span)

    @rule(span=spans)
    def run(self, span):
        self.world.run(span)

    @rule(
        method=st.sampled_from(METHODS),
        answer=st.sampled_from(ANSWERS),
        times=st.integers(1, 3),
        applied=st.booleans(),
        of_worker=st.booleans(),
    )
    def spoil_calls(self, method, answer, times, applied, of_worker):
        unclear = answer in [BROKEN_OFF, INTERNAL, UNAVAILABLE]
        self.world.weather.plan(method, answer, times=times, applied=applied and unclear, of_worker=of_worker)

    @rule(answer=st.sampled_from([BROKEN_OFF, UNAVAILABLE]), span=spans)
    def land_a_create_late(self, answer, span):
        self.world.weather.plan(INSERT, answer, late=span)

    @rule()
    def take_a_name_for_nothing(self):
        self.world.weather.plan(INSERT, NAME_TAKEN)

    @rule(fault=st.sampled_from(list(CommitFault)))
    def spoil_a_commit(self, fault):
        self.world.weather.commits.append(fault)

    @rule(delays=st.lists(spans, max_size=3))
    def spoil_an_event(self, delays):
        self.world.weather.arriving.append(delays)

    @rule(behaviour=st.sampled_from(BEHAVIOURS))
    def change_machines_to_come(self, behaviour):
        self.behaviour = behaviour

    @precondition(lambda self: self._running())
    @rule(index=indexes, blow=st.sampled_from(["preempt", "host_error", "reboot", "by hand"]))
    def strike(self, index, blow):
        cloud, running = self.world.cloud, self._running()
        machine = running[index % len(running)]
        if blow == "reboot":
            cloud.zones.reboot(machine)
        elif blow == "by hand":
            cloud.zones.delete_by_hand(machine)
        else:
            getattr(cloud.zones.core, blow)(machine.order.zone, machine.order.name, self.world.now)

    @rule(zones=st.lists(st.sampled_from(ZONES), max_size=2, unique=True))
    def silence(self, zones):
        self.world.cloud.zones.core.silence(zones)

    @precondition(lambda self: self.world.jobs)
    @rule(index=indexes, zone=st.sampled_from(ZONES))
    def place_a_stranger(self, index, zone):
        jobs = self.world.jobs
        self.world.cloud.zones.place_stranger(zone, jobs[index % len(jobs)].plan.name)

    @invariant()
    def no_job_has_two_workers(self):
        self.world.cloud.onlooker.check_machines()

    def teardown(self):
        try:
            self.world.settle()
        finally:
            self.world.close()

    def _running(self):
        ours = [machine for machine in self.world.cloud.machines() if machine.order.labels]
        return [machine for machine in ours if machine.status is Status.RUNNING]


TestPlane = Plane.TestCase
TestPlane.settings = settings(
    max_examples=300, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow]
)

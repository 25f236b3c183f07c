"""Hypothesis makes stories up, step by step, and makes them short again when a rule breaks: of machines, and of a cluster."""

from __future__ import annotations

from datetime import timedelta

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runtender.local.compute.instances import Status
from runtender.local.kubernetes.documents import name_of, namespace_of
from runtender.local.kubernetes.pods import node_of
from runtender.local.simulation import statuses
from runtender.local.simulation.clusters import POOL, ClusterSetup
from runtender.local.simulation.guests import Behaviour, Death
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.pods import PodBehaviour, PodDeath
from runtender.local.simulation.weather import (
    BROKEN_OFF,
    CREATE_JOB,
    DELETE,
    DELETE_JOB,
    DELETE_JOBS,
    FLEET,
    FORBIDDEN,
    GET,
    GET_CLUSTER,
    GET_JOB,
    INSERT,
    INTERNAL,
    LIST_JOBS,
    LIST_PODS,
    NAME_TAKEN,
    RATE,
    TOO_MANY,
    UNAVAILABLE,
    UPLOAD,
    CommitFault,
)
from runtender.local.simulation.world import CLUSTER_CONFIG, CONFIG, World

ZONES = [f"us-central1-{letter}" for letter in "abcf"]
TASK = {"name": "chore", "image": "us-docker.pkg.dev/p/r/task:1", "command": ["true"]}
MESSAGES = [{"config": CONFIG}, {"config": TASK, "kind": "task"}]
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

THREE_PODS = {"runtime": "gke", "workers": 3}
CLUSTER_MESSAGES = [
    {"config": {**CLUSTER_CONFIG, "compute": {"workers": 3}}},
    {"config": {**TASK, **THREE_PODS}, "kind": "task"},
    {"config": {**CONFIG, "models": ["theta", "lightgbm"], "compute": {"families": {"ml": THREE_PODS}}}},
]
CLUSTER_METHODS = [CREATE_JOB, DELETE_JOB, DELETE_JOBS, GET_JOB, LIST_JOBS, LIST_PODS, GET_CLUSTER]
CLUSTER_ANSWERS = [
    BROKEN_OFF,
    statuses.INTERNAL,
    statuses.UNAVAILABLE,
    statuses.TOO_MANY,
    statuses.FORBIDDEN,
    statuses.UNAUTHORIZED,
    statuses.NOT_THERE,
]
POD_BEHAVIOURS = [
    PodBehaviour(),
    PodBehaviour(work_s=30, exit_code=3),
    PodBehaviour(work_s=30, cells_failed=1),
    PodBehaviour(work_s=30, out_of_memory=True),
    PodBehaviour(work_s=900, obeys=False),
    PodBehaviour(work_s=200, outlives_node=True),
    PodBehaviour(work_s=60, complete=False),
    *(PodBehaviour(dies=death) for death in PodDeath),
]

UNCLEAR = [BROKEN_OFF, INTERNAL, UNAVAILABLE, statuses.INTERNAL, statuses.UNAVAILABLE]
spans = st.sampled_from([1, 5, 20, 61, 150, 700]).map(lambda seconds: timedelta(seconds=seconds))
fates = st.one_of(
    st.just(Fate()),
    st.builds(Fate, kill_at=st.integers(0, 60)),
    st.builds(Fate, freeze_at=st.integers(0, 30).map(lambda call: 2 * call + 1), freeze_for=spans),
    st.builds(Fate, skew=st.sampled_from([timedelta(seconds=-5), timedelta(seconds=5)])),
)
indexes = st.integers(0, 7)
requests = st.sampled_from(["one", "two", "three"])


class Plane(RuleBasedStateMachine):
    """One world under whatever hypothesis thinks of: what can happen in worlds of all kinds."""

    world: World

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

    @rule(fault=st.sampled_from(list(CommitFault)))
    def spoil_a_commit(self, fault):
        self.world.weather.commits.append(fault)

    @rule(delays=st.lists(spans, max_size=3))
    def spoil_an_event(self, delays):
        self.world.weather.arriving.append(delays)

    @invariant()
    def no_job_has_two_sets_of_workers(self):
        self.world.cloud.onlooker.check_workers()

    def teardown(self):
        try:
            self.world.settle()
        finally:
            self.world.close()


class Machines(Plane):
    """A world of machines."""

    def __init__(self):
        super().__init__()
        self.behaviour = BEHAVIOURS[0]
        self.world = World(behaviour=lambda _booted: self.behaviour)

    @rule(message=st.sampled_from(MESSAGES), force=st.booleans(), request=requests)
    def submit(self, message, force, request):
        self.world.submit(**message, force=force, request_id=request)

    @rule(
        method=st.sampled_from(METHODS),
        answer=st.sampled_from(ANSWERS),
        times=st.integers(1, 3),
        applied=st.booleans(),
        of_worker=st.booleans(),
    )
    def spoil_calls(self, method, answer, times, applied, of_worker):
        applied = applied and answer in UNCLEAR
        self.world.weather.plan(method, answer, times=times, applied=applied, of_worker=of_worker)

    @rule(answer=st.sampled_from([BROKEN_OFF, UNAVAILABLE]), span=spans)
    def land_a_create_late(self, answer, span):
        self.world.weather.plan(INSERT, answer, late=span)

    @rule()
    def take_a_name_for_nothing(self):
        self.world.weather.plan(INSERT, NAME_TAKEN)

    @rule(behaviour=st.sampled_from(BEHAVIOURS))
    def change_machines_to_come(self, behaviour):
        self.behaviour = behaviour

    @precondition(lambda self: self._running())
    @rule(index=indexes, blow=st.sampled_from(["preempt", "host_error", "reboot", "by hand"]))
    def strike(self, index, blow):
        zones, running = self.world.cloud.zones, self._running()
        machine = running[index % len(running)]
        if blow == "reboot":
            zones.reboot(machine)
        elif blow == "by hand":
            zones.delete_by_hand(machine)
        else:
            getattr(zones.core, blow)(machine.order.zone, machine.order.name, self.world.now)

    @rule(zones=st.lists(st.sampled_from(ZONES), max_size=2, unique=True))
    def silence(self, zones):
        self.world.cloud.zones.core.silence(zones)

    @precondition(lambda self: self.world.jobs)
    @rule(index=indexes, zone=st.sampled_from(ZONES))
    def place_a_stranger(self, index, zone):
        jobs = self.world.jobs
        self.world.cloud.zones.place_stranger(zone, jobs[index % len(jobs)].plan.name)

    def _running(self):
        ours = [machine for machine in self.world.cloud.machines() if machine.order.labels]
        return [machine for machine in ours if machine.status is Status.RUNNING]


class Clusters(Plane):
    """A world with a standing cluster."""

    def __init__(self):
        super().__init__()
        self.behaviour = POD_BEHAVIOURS[0]
        self.world = World(cluster=ClusterSetup(nodes=4, pods=lambda _order: self.behaviour))
        self.cluster = self.world.cloud.cluster

    @rule(message=st.sampled_from(CLUSTER_MESSAGES), force=st.booleans(), request=requests)
    def submit(self, message, force, request):
        self.world.submit(**message, force=force, request_id=request)

    @rule(
        method=st.sampled_from(CLUSTER_METHODS),
        answer=st.sampled_from(CLUSTER_ANSWERS),
        times=st.integers(1, 3),
        applied=st.booleans(),
    )
    def spoil_calls(self, method, answer, times, applied):
        self.world.weather.plan(method, answer, times=times, applied=applied and answer in UNCLEAR)

    @rule(times=st.integers(1, 4))
    def spoil_words_of_pods(self, times):
        self.world.weather.plan(UPLOAD, UNAVAILABLE, times=times, of_worker=True)

    @rule(answer=st.sampled_from([BROKEN_OFF, statuses.UNAVAILABLE]), span=spans)
    def land_a_create_late(self, answer, span):
        self.world.weather.plan(CREATE_JOB, answer, late=span)

    @rule()
    def take_a_name_for_nothing(self):
        self.world.weather.plan(CREATE_JOB, statuses.NAME_TAKEN)

    @rule(size=st.sampled_from([None, 1]))
    def cut_lists(self, size):
        self.world.weather.jobs_per_page = size

    @rule(behaviour=st.sampled_from(POD_BEHAVIOURS))
    def change_pods_to_come(self, behaviour):
        self.behaviour = behaviour

    @precondition(lambda self: self.cluster.running_pods())
    @rule(index=indexes, blow=st.sampled_from(["evict", "preempt", "take_node", "lose_node", "by hand"]))
    def strike(self, index, blow):
        running, now = self.cluster.running_pods(), self.world.now
        pod = running[index % len(running)]
        if blow == "by hand":
            self.cluster.people.delete_pod(pod)
        elif blow.endswith("node"):
            getattr(self.cluster.core, blow)(node_of(pod), now)
            self.cluster.core.add_node(POOL, now)
        else:
            getattr(self.cluster.core, blow)(namespace_of(pod), name_of(pod), now)

    @precondition(lambda self: self.cluster.jobs())
    @rule(index=indexes, propagation=st.sampled_from(["Background", "Foreground"]))
    def delete_a_job(self, index, propagation):
        jobs = self.cluster.jobs()
        self.cluster.people.delete_job(jobs[index % len(jobs)], propagation)

    @precondition(lambda self: self.world.jobs)
    @rule(index=indexes)
    def place_a_stranger(self, index):
        jobs = self.world.jobs
        self.cluster.people.place_job(jobs[index % len(jobs)].plan.name, {})

    @rule(span=spans)
    def take_the_api_down(self, span):
        self.cluster.go_down(span)

    @rule(page=st.booleans())
    def move_the_api(self, page):
        self.cluster.move(page=page)


def told(machine, examples):
    """Return the test that lets hypothesis tell so many stories of a machine."""
    test = machine.TestCase
    test.settings = settings(
        max_examples=examples, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow]
    )
    return test


TestMachines, TestClusters = told(Machines, 200), told(Clusters, 100)

"""Hypothesis makes up stories of a cluster, step by step, and makes them short again when a rule breaks."""

from __future__ import annotations

from datetime import timedelta

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runtender.local.kubernetes.documents import name_of, namespace_of
from runtender.local.kubernetes.pods import node_of
from runtender.local.simulation import statuses
from runtender.local.simulation.clusters import POOL, ClusterSetup
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.pods import PodBehaviour, PodDeath
from runtender.local.simulation.weather import (
    BROKEN_OFF,
    CREATE_JOB,
    DELETE_JOB,
    DELETE_JOBS,
    GET_CLUSTER,
    GET_JOB,
    LIST_JOBS,
    LIST_PODS,
    UNAVAILABLE,
    UPLOAD,
    CommitFault,
)
from runtender.local.simulation.world import CLUSTER_CONFIG, CONFIG, World

TASK = {
    "name": "chore",
    "image": "us-docker.pkg.dev/p/r/task:1",
    "command": ["true"],
    "runtime": "gke",
    "workers": 2,
}
MIXED = {
    **CONFIG,
    "models": ["theta", "lightgbm"],
    "compute": {"families": {"ml": {"runtime": "gke", "workers": 2}}},
}
CONFIGS = [
    {"config": {**CLUSTER_CONFIG, "compute": {"workers": 3}}},
    {"config": TASK, "kind": "task"},
    {"config": MIXED},
]
CALLS = [CREATE_JOB, DELETE_JOB, DELETE_JOBS, GET_JOB, LIST_JOBS, LIST_PODS, GET_CLUSTER]
ANSWERS = [
    BROKEN_OFF,
    statuses.INTERNAL,
    statuses.UNAVAILABLE,
    statuses.TOO_MANY,
    statuses.FORBIDDEN,
    statuses.UNAUTHORIZED,
    statuses.NOT_THERE,
]
UNCLEAR = ANSWERS[:3]
BEHAVIOURS = [
    PodBehaviour(),
    PodBehaviour(work_s=30, exit_code=3),
    PodBehaviour(work_s=30, cells_failed=1),
    PodBehaviour(work_s=30, out_of_memory=True),
    PodBehaviour(work_s=900, obeys=False),
    PodBehaviour(work_s=200, outlives_node=True),
    PodBehaviour(work_s=60, complete=False),
    *(PodBehaviour(dies=death) for death in PodDeath),
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
    """One world with a cluster under whatever hypothesis thinks of."""

    def __init__(self):
        super().__init__()
        self.behaviour = BEHAVIOURS[0]
        self.world = World(cluster=ClusterSetup(nodes=4, pods=lambda _order: self.behaviour))
        self.cluster = self.world.cloud.cluster

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
        method=st.sampled_from(CALLS),
        answer=st.sampled_from(ANSWERS),
        times=st.integers(1, 3),
        applied=st.booleans(),
    )
    def spoil_calls(self, method, answer, times, applied):
        self.world.weather.plan(method, answer, times=times, applied=applied and answer in UNCLEAR)

    @rule(times=st.integers(1, 4))
    def spoil_words(self, times):
        self.world.weather.plan(UPLOAD, UNAVAILABLE, times=times, of_worker=True)

    @rule(answer=st.sampled_from(UNCLEAR), span=spans)
    def land_a_create_late(self, answer, span):
        self.world.weather.plan(CREATE_JOB, answer, late=span)

    @rule()
    def take_a_name_for_nothing(self):
        self.world.weather.plan(CREATE_JOB, statuses.NAME_TAKEN)

    @rule(size=st.sampled_from([None, 1]))
    def cut_lists(self, size):
        self.world.weather.jobs_per_page = size

    @rule(fault=st.sampled_from(list(CommitFault)))
    def spoil_a_commit(self, fault):
        self.world.weather.commits.append(fault)

    @rule(delays=st.lists(spans, max_size=3))
    def spoil_an_event(self, delays):
        self.world.weather.arriving.append(delays)

    @rule(behaviour=st.sampled_from(BEHAVIOURS))
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

    @invariant()
    def no_job_has_two_sets_of_workers(self):
        self.world.cloud.onlooker.check_workers()

    def teardown(self):
        try:
            self.world.settle()
        finally:
            self.world.close()


TestPlane = Plane.TestCase
TestPlane.settings = settings(
    max_examples=150, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow], deadline=None
)

"""Cases of jobs on a standing cluster, each told from beginning to end with pods that are played.

Every step of every world here is also watched by the onlooker's rules, and each world has to come to rest.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runtender.local.kubernetes.documents import name_of, namespace_of
from runtender.local.kubernetes.pods import node_of
from runtender.local.simulation.clusters import POOL, ClusterSetup
from runtender.local.simulation.pods import ORDINARY_POD, PodBehaviour, PodDeath
from runtender.local.simulation.statuses import NO_NAMESPACE, NO_QUOTA, UNAUTHORIZED
from runtender.local.simulation.weather import BROKEN_OFF, CREATE_JOB, GET_JOB
from runtender.local.simulation.world import CLUSTER_CONFIG, CLUSTER_ENVIRONMENT, CONFIG
from runtender.model import Outcome, Phase, Reason
from runtender.settings import Settings

MINUTE = timedelta(minutes=1)
SUCCESS = (Outcome.SUCCEEDED, Reason.COMPLETED)


@pytest.fixture
def a_cluster(a_world):
    """Make worlds with a standing cluster and a forecast by four pods on it: `a_cluster(nodes=2, pods=PodBehaviour())`."""

    def make(*, settings=None, submits=True, **setup):
        world = a_world(settings=settings, cluster=ClusterSetup(**setup))
        if submits:
            world.submit(CLUSTER_CONFIG)
        return world

    return make


def ending(world):
    return world.job.outcome, world.job.reason


def creates(world):
    return world.cloud.cluster.core.counts()[CREATE_JOB]


def by_index(**behaviours):
    """Return what is in store for each index: `by_index(i2=PodBehaviour(exit_code=3))`; all others have nothing special."""
    return lambda order: behaviours.get(f"i{order.env['JOB_COMPLETION_INDEX']}", ORDINARY_POD)


class TestWorkers:
    @pytest.mark.parametrize("count", [1, 3, 40])
    def test_the_cells_of_all_workers_are_the_jobs(self, a_world, count):
        world = a_world(cluster=ClusterSetup(nodes=count, pods=PodBehaviour(cells=5)))
        world.submit({**CLUSTER_CONFIG, "compute": {"workers": count}})
        world.run(10 * MINUTE)
        world.settle()
        assert ending(world) == SUCCESS
        assert (world.job.summary.n_cells, world.job.summary.complete) == (5 * count, True)
        assert creates(world) == 1

    def test_one_that_fails_for_good_is_named_and_the_others_count(self, a_cluster):
        world = a_cluster(pods=by_index(i2=PodBehaviour(work_s=30, exit_code=3)))
        world.run(10 * MINUTE)
        world.settle()
        assert ending(world) == (Outcome.PARTIAL, Reason.FAILED_INDEXES)
        assert world.job.detail.startswith("index 2 failed (4 workers)")

    def test_one_that_fails_once_is_made_good_where_repeats_are_allowed(self, a_world):
        settings = Settings.from_env({**CLUSTER_ENVIRONMENT, "SF_GKE_INDEX_RETRIES": "1"})
        begun = set()

        def fails_at_first(order):
            index = order.env["JOB_COMPLETION_INDEX"]
            fails = index == "2" and index not in begun
            begun.add(index)
            return PodBehaviour(work_s=30, exit_code=3 if fails else 0)

        world = a_world(settings=settings, cluster=ClusterSetup(pods=fails_at_first))
        world.submit(CLUSTER_CONFIG)
        world.run(10 * MINUTE)
        world.settle()
        assert ending(world) == SUCCESS

    def test_memory_that_runs_out_is_the_reason_where_all_fail(self, a_cluster):
        world = a_cluster(pods=PodBehaviour(out_of_memory=True))
        world.run(10 * MINUTE)
        world.settle()
        assert ending(world) == (Outcome.FAILED, Reason.OUT_OF_MEMORY)

    def test_one_that_hangs_runs_into_the_limit_of_the_run(self, a_cluster):
        world = a_cluster(pods=by_index(i1=PodBehaviour(dies=PodDeath.HANGS)))
        world.run(30 * MINUTE)
        world.settle()
        assert ending(world) == (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT)
        assert world.job.ended_at - world.job.started_at <= 21 * MINUTE

    def test_those_that_ignore_their_end_are_killed_and_the_job_rests_after(self, a_cluster):
        world = a_cluster(pods=PodBehaviour(work_s=3000, obeys=False))
        world.run(2 * MINUTE)
        world.cancel(world.job.run_id)
        world.settle()
        assert world.job.outcome is Outcome.CANCELLED

    def test_a_family_on_pods_beside_one_on_a_machine(self, a_cluster):
        world = a_cluster(submits=False)
        ml = {"runtime": "gke", "workers": 3}
        models = ["theta", "lightgbm"]
        world.submit({**CONFIG, "models": models, "compute": {"families": {"ml": ml}}})
        world.run(10 * MINUTE)
        world.settle()
        assert [(job.runtime, job.outcome) for job in world.jobs] == [
            ("gce", Outcome.SUCCEEDED),
            ("gke", Outcome.SUCCEEDED),
        ]


class TestBlows:
    @pytest.mark.parametrize("blow", ["evict", "preempt"])
    def test_a_pod_that_the_platform_takes_is_replaced_and_not_charged(self, a_cluster, blow):
        world = a_cluster()
        world.run(2 * MINUTE)
        pod, core = world.cloud.cluster.running_pods()[2], world.cloud.cluster.core
        assert getattr(core, blow)(namespace_of(pod), name_of(pod), world.now)
        world.run(10 * MINUTE)
        world.settle()
        assert ending(world) == SUCCESS
        assert world.job.indexes.failed == ""

    @pytest.mark.parametrize("outlives", [False, True], ids=["dead at once", "only cut off"])
    def test_a_pod_whose_node_is_lost_is_replaced_when_it_is_surely_gone(self, a_cluster, outlives):
        world = a_cluster(nodes=5, pods=PodBehaviour(work_s=200, outlives_node=outlives))
        world.run(2 * MINUTE)
        world.cloud.cluster.core.lose_node(node_of(world.cloud.cluster.running_pods()[0]), world.now)
        world.run(16 * MINUTE)
        world.settle()
        assert ending(world) == SUCCESS

    @pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
    def test_a_job_that_somebody_deletes_leaves_nothing(self, a_cluster, propagation):
        world = a_cluster(pods=PodBehaviour(work_s=900))
        world.run(2 * MINUTE)
        world.cloud.cluster.people.delete_job(world.cloud.cluster.jobs()[0], propagation)
        world.run(14 * MINUTE)
        world.settle()
        assert ending(world) == (Outcome.FAILED, Reason.JOB_DELETED)

    def test_a_cluster_that_somebody_deletes_takes_its_job_along(self, a_cluster):
        world = a_cluster(pods=PodBehaviour(work_s=900))
        world.run(2 * MINUTE)
        world.cloud.cluster.vanish()
        world.run(14 * MINUTE)
        world.settle()
        assert ending(world) == (Outcome.FAILED, Reason.JOB_DELETED)
        assert world.job.phase is Phase.DONE

    def test_an_api_that_is_down_for_minutes_ends_no_healthy_run(self, a_cluster):
        world = a_cluster(pods=PodBehaviour(work_s=600))
        world.run(3 * MINUTE)
        world.cloud.cluster.go_down(5 * MINUTE)
        world.run(6 * MINUTE)
        assert world.job.phase is Phase.RUNNING
        world.run(4 * MINUTE)
        world.settle()
        assert ending(world) == SUCCESS
        assert creates(world) == 1

    @pytest.mark.parametrize("page", [False, True], ids=["nobody answers there", "somebody else does"])
    def test_an_api_that_has_moved_is_found_again(self, a_cluster, page):
        world = a_cluster()
        world.run(2 * MINUTE)
        world.cloud.cluster.move(page=page)
        world.run(8 * MINUTE)
        world.settle()
        assert ending(world) == SUCCESS


class TestRoom:
    def test_pods_that_wait_ten_minutes_for_room_cost_the_run_nothing(self, a_cluster):
        world = a_cluster(nodes=0)
        world.run(10 * MINUTE)
        assert world.job.phase is Phase.PROVISIONING
        for _ in range(4):
            world.cloud.cluster.core.add_node(POOL, world.now)
        world.run(8 * MINUTE)
        world.settle()
        assert ending(world) == SUCCESS
        assert world.job.deadlines.run - world.job.started_at == 20 * MINUTE
        assert world.job.started_at - world.job.accepted_at > 10 * MINUTE

    def test_pods_for_which_there_is_never_room_end_it_at_the_capacity_deadline(self, a_cluster):
        world = a_cluster(nodes=0)
        world.run(18 * MINUTE)
        world.settle()
        assert ending(world) == (Outcome.NO_CAPACITY, Reason.UNSCHEDULABLE)

    def test_a_quota_of_pods_that_is_lifted_in_time_only_delays_it(self, a_cluster):
        world = a_cluster(submits=False)
        world.cloud.cluster.people.limit_pods(0)
        world.submit(CLUSTER_CONFIG)
        world.run(8 * MINUTE)
        world.cloud.cluster.people.lift_limit()
        world.run(12 * MINUTE)
        world.settle()
        assert ending(world) == SUCCESS

    def test_an_image_that_nobody_has_ends_it_when_patience_is_over(self, a_cluster):
        world = a_cluster(submits=False)
        world.cloud.cluster.core.miss_image(world.settings.container_image)
        world.submit(CLUSTER_CONFIG)
        world.run(8 * MINUTE)
        world.settle()
        assert ending(world) == (Outcome.FAILED, Reason.IMAGE_PULL)

    @pytest.mark.parametrize(
        "at_s", [2, 5, 30], ids=["before pods have nodes", "while images are pulled", "at work"]
    )
    def test_a_cancel_at_any_time_leaves_nothing(self, a_cluster, at_s):
        world = a_cluster()
        world.run(timedelta(seconds=at_s))
        world.cancel(world.job.run_id)
        world.settle()
        assert ending(world) == (Outcome.CANCELLED, Reason.CANCELLED)


class TestCreates:
    @pytest.mark.parametrize("late_s", [0, 40, 300], ids=["at once", "soon", "after it was sent again"])
    def test_one_without_an_answer_is_found_and_makes_one_job(self, a_cluster, late_s):
        world = a_cluster(submits=False)
        late = timedelta(seconds=late_s)
        world.weather.plan(CREATE_JOB, BROKEN_OFF, applied=True, late=late)
        world.submit(CLUSTER_CONFIG)
        world.run(10 * MINUTE)
        world.settle()
        assert ending(world) == SUCCESS
        assert len(world.job.resources) == 1

    @pytest.mark.parametrize("answer", [NO_NAMESPACE, UNAUTHORIZED], ids=["no namespace", "401"])
    def test_one_that_is_refused_for_good_ends_it_with_the_apis_words(self, a_cluster, answer):
        world = a_cluster(submits=False)
        world.weather.plan(CREATE_JOB, answer)
        world.submit(CLUSTER_CONFIG)
        world.run(MINUTE)
        world.settle()
        assert ending(world) == (Outcome.FAILED, Reason.CONFIG_FAULT)
        assert answer.json()["message"] in world.job.detail

    def test_one_that_exceeds_the_namespaces_quota_finds_no_room_elsewhere(self, a_cluster):
        world = a_cluster(submits=False)
        world.weather.plan(CREATE_JOB, NO_QUOTA)
        world.submit(CLUSTER_CONFIG)
        world.run(MINUTE)
        world.settle()
        assert world.job.outcome is Outcome.NO_CAPACITY
        assert "exceeded quota" in world.job.detail


def test_a_look_that_fails_ends_no_run(a_cluster):
    world = a_cluster()
    world.run(MINUTE)
    world.weather.plan(GET_JOB, UNAUTHORIZED, times=30)
    world.run(9 * MINUTE)
    assert (world.job.phase, world.job.outcome) == (Phase.RUNNING, None)
    world.settle()
    assert ending(world) == SUCCESS


@pytest.mark.parametrize("minor", [29, 31, 33, 34])
def test_each_version_of_kubernetes_runs_it(a_cluster, minor):
    world = a_cluster(minor=minor)
    world.run(8 * MINUTE)
    world.settle()
    assert ending(world) == SUCCESS


def test_of_many_workers_that_end_at_once_one_event_looks_for_all(a_world):
    world = a_world(cluster=ClusterSetup(nodes=40, pods=replace(ORDINARY_POD, work_s=100)))
    world.submit({**CLUSTER_CONFIG, "compute": {"workers": 40}})
    world.run(timedelta(seconds=115))
    of_ends = [one for one in world.invocations if one.kind == "sf-marker"][40:]
    assert len(of_ends) == 40
    assert sum(GET_JOB in one.calls for one in of_ends) == 1
    assert sorted(len(one.calls) for one in of_ends)[-2] == 1
    world.settle()
    assert ending(world) == SUCCESS

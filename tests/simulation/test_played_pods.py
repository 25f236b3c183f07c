"""A played pod does what the real bootstrap does: it looks first, tells what stays true, and leaves with the right status."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from runtender.ids import marker_object
from runtender.local.simulation.clusters import ClusterSetup
from runtender.local.simulation.pods import PodBehaviour
from runtender.local.simulation.weather import UNAVAILABLE
from runtender.local.simulation.world import CLUSTER_CONFIG, CLUSTER_ENVIRONMENT
from runtender.model import Outcome
from runtender.settings import Settings
from runtender.wire.markers import KEYS
from runtender.worker.layout import CELLS_FOLDER

SECOND = timedelta(seconds=1)
MINUTE_OF_WORK = PodBehaviour(work_s=60)
GET_OBJECT = "storage.objects.get"


@pytest.fixture
def two_pods(a_world):
    """Make a world with two pods that are about to look whether they may begin."""

    def make(pods=MINUTE_OF_WORK, **environment):
        settings = Settings.from_env({**CLUSTER_ENVIRONMENT, **environment})
        world = a_world(settings=settings, cluster=ClusterSetup(nodes=2, pods=pods))
        world.submit({**CLUSTER_CONFIG, "compute": {"workers": 2}})
        world.run(2 * SECOND)
        return world

    return make


def marker(world, index, stage):
    name = marker_object(world.job.job_key, world.job.resources[-1].nonce, index, stage)
    body = world.cloud.read_object("code", name)
    return None if body is None else json.loads(body)


def tell(world, index, marker):
    """Write a terminal marker before the pod of its index looks."""
    name = marker_object(world.job.job_key, world.job.resources[-1].nonce, index, "terminal")
    world.cloud.write_object("code", name, json.dumps(marker).encode())


def exits(world):
    """Return the exit codes of the pods, in the order in which they ended."""
    told = [line.rpartition(" ")[2] for _, line in world.cloud.log if " exits " in line]
    return [int(code) for code in told]


def cells_of(world):
    bucket, _, folder = world.job.plan.cells_uri.removeprefix("gs://").partition("/")
    page = world.plane.objects.list(
        bucket, f"{folder}/{world.job.resources[-1].nonce}/{CELLS_FOLDER}", limit=100
    )
    return len(page.objects)


@pytest.mark.parametrize("stage", ["started", "terminal"])
def test_its_markers_have_the_keys_of_the_real_ones(two_pods, stage):
    world = two_pods()
    world.run(120 * SECOND)
    assert set(marker(world, 1, stage)) == set(KEYS)


def test_a_failure_is_told_when_nobody_will_repeat_it(two_pods):
    world = two_pods(PodBehaviour(work_s=20, exit_code=3))
    world.run(60 * SECOND)
    told = marker(world, 0, "terminal")
    assert (told["status"], told["exit_code"], told["reason"]) == ("FAILED", 3, "ExitCode")


def test_a_failure_that_may_be_repeated_is_not_told(two_pods):
    world = two_pods(PodBehaviour(work_s=20, exit_code=3), SF_GKE_INDEX_RETRIES="1")
    world.run(60 * SECOND)
    assert exits(world)[:2] == [3, 3]
    assert marker(world, 0, "terminal") is None


def test_one_that_is_told_to_end_tells_nothing(two_pods):
    world = two_pods(PodBehaviour(work_s=600))
    world.run(60 * SECOND)
    world.cancel(world.job.run_id)
    world.run(10 * SECOND)
    assert exits(world) == [143, 143]
    assert marker(world, 0, "terminal") is None


def test_an_index_whose_success_is_told_already_is_not_worked_again(two_pods):
    world = two_pods()
    tell(world, 0, {"status": "SUCCEEDED", "exit_code": 0})
    world.run(20 * SECOND)
    assert exits(world) == [0]
    assert marker(world, 0, "started") is None


def test_an_index_whose_failure_is_told_already_stays_failed(two_pods):
    world = two_pods()
    tell(world, 0, {"status": "FAILED", "exit_code": 7})
    world.run(20 * SECOND)
    assert exits(world) == [7]


def test_a_job_that_the_plane_has_given_up_is_not_worked_at_all(two_pods):
    world = two_pods()
    # The plane itself is not to hear of it.
    world.weather.arriving.append([])
    tell(world, None, {"status": "INTERRUPTED", "writer": "plane"})
    world.run(20 * SECOND)
    assert exits(world) == [0, 0]
    assert cells_of(world) == 0


def test_without_storage_none_begins(two_pods):
    world = two_pods()
    world.weather.plan(GET_OBJECT, UNAVAILABLE, times=1000, of_worker=True)
    world.run(660 * SECOND)
    assert exits(world) == [3, 3]
    world.settle()
    assert world.job.outcome is Outcome.FAILED

"""Quota in whole worlds: what has no room is not called."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta

import pytest

from runtender.local.compute.quotas import Quotas
from runtender.local.http import google_error
from runtender.local.simulation.world import CONFIG, ENVIRONMENT
from runtender.model import Outcome, Reason
from runtender.settings import Settings

MINUTE = timedelta(minutes=1)
CATALOGUE = {
    "regions": {
        "us-central1": {"zones": ["a", "b"]},
        "us-east1": {"zones": ["b", "c"], "subnetwork_uri": "projects/p/regions/us-east1/subnetworks/s"},
    }
}
GPU_TASK = {
    "name": "train",
    "image": "us-docker.pkg.dev/p/r/task:1",
    "command": ["true"],
    "hardware": "gpu",
    "gpu_type": "L4",
}
READS = ("compute.regions.get", "compute.projects.get")


@pytest.fixture
def two_regions(a_world):
    """Make a world whose plane may also use another region than its own."""

    def make(**parts):
        settings = Settings.from_env({**ENVIRONMENT, "SF_COMPUTE_FALLBACK": "gs://code/places.json"})
        world = a_world(settings=settings, **parts)
        world.cloud.write_object("code", "places.json", json.dumps(CATALOGUE).encode())
        return world

    return make


def ending(world):
    return world.job.outcome, world.job.reason


def inserts(world):
    """How many inserts were sent."""
    calls = Counter(call for invocation in world.invocations for call in invocation.calls)
    return calls["compute.instances.insert"]


def test_a_home_region_that_is_used_up_moves_the_run_on_without_an_insert_there(two_regions):
    world = two_regions(quotas=Quotas(by_region={"us-central1": {"N2_CPUS": 0}}))
    world.submit()
    world.run(10 * MINUTE)
    world.settle()
    assert ending(world) == (Outcome.SUCCEEDED, Reason.COMPLETED)
    assert [row.location for row in world.job.resources] == ["us-east1-b"]
    assert inserts(world) == 1
    (told,) = world.job.telemetry["capacity"]["preflight"]
    assert (told["region"], told["blocked"]) == ("us-central1", True)


def test_a_gpu_quota_of_the_whole_project_ends_the_run_fast_and_says_so(two_regions):
    world = two_regions(quotas=Quotas(gpus_all_regions=0))
    world.submit(GPU_TASK, kind="task")
    world.run(MINUTE / 2)
    world.settle()
    assert ending(world) == (Outcome.NO_CAPACITY, Reason.QUOTA_BLOCKED)
    assert "GPUS_ALL_REGIONS over all regions: 1 needed, 0 of 0 GPUs free" in world.job.detail
    assert inserts(world) == 0


def test_a_run_that_waits_for_quota_is_placed_when_the_one_before_it_has_left(a_world):
    world = a_world(quotas=Quotas(by_region={"us-central1": {"N2_CPUS": 8}}))
    world.submit()
    world.run(MINUTE)
    waits = {**CONFIG, "run_name": "second", "compute": {"capacity": {"wait_for_quota": True}}}
    world.submit(waits)
    world.run(14 * MINUTE)
    world.settle()
    assert [job.outcome for job in world.jobs] == [Outcome.SUCCEEDED] * 2
    assert inserts(world) == 2, "no insert was sent to be refused"


@pytest.mark.parametrize("method", READS)
@pytest.mark.parametrize(
    "answer",
    [google_error(403, "forbidden", "no"), google_error(503, "backendError", "later")],
    ids=["not allowed", "not there"],
)
def test_a_quota_that_cannot_be_read_holds_nobody_up(a_world, method, answer):
    world = a_world()
    world.weather.plan(method, answer, times=99)
    world.submit()
    world.run(10 * MINUTE)
    world.settle()
    assert ending(world) == (Outcome.SUCCEEDED, Reason.COMPLETED)

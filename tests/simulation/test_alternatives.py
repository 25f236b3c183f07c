"""Other machines where a job's own is not to be had: its own in every place first, then each other one in every place."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from runtender.local.compute.quotas import Quotas
from runtender.local.compute.stock import Stock
from runtender.local.scenario import Stockout
from runtender.local.simulation.cloud import START
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.world import CONFIG, ENVIRONMENT
from runtender.model import Outcome, Reason
from runtender.settings import Settings

MINUTE = timedelta(minutes=1)
QUICK = Behaviour(boot_s=1, work_s=30)
ALL_ZONES = [f"us-central1-{letter}" for letter in "abcf"]


@pytest.fixture
def with_alternatives(a_world):
    def make(*others, **parts):
        alternatives = json.dumps({"n2-standard-8": others})
        settings = Settings.from_env({**ENVIRONMENT, "SF_ALTERNATIVES": alternatives})
        world = a_world(settings=settings, behaviour=QUICK, **parts)
        made: list[dict] = []
        insert = world.cloud.zones.core.handle

        def watched(request, now):
            if request.method == "POST" and request.path.endswith("/instances"):
                made.append(request.json())
            return insert(request, now)

        world.cloud.zones.core.handle = watched
        world.submit({**CONFIG, "compute": {"capacity": {"gce": {"max_attempts": 20}}}})
        world.run(15 * MINUTE)
        world.settle()
        return world, made

    return make


def out_of_stock():
    """Every zone has no machine for the first insert."""
    return Stock([Stockout(zone=zone, first=1) for zone in ALL_ZONES], opened_at=START)


def test_another_series_is_taken_when_no_zone_has_the_own_one(with_alternatives):
    world, made = with_alternatives("n2d-standard-8", stock=out_of_stock())
    assert (world.job.outcome, world.job.reason) == (Outcome.SUCCEEDED, Reason.COMPLETED)
    types = [body["machineType"].rpartition("/")[2] for body in made]
    assert types == ["n2-standard-8"] * 4 + ["n2d-standard-8"]
    assert [row.location for row in world.job.resources] == [*ALL_ZONES, ALL_ZONES[0]]
    assert world.job.telemetry["gce_instance"]["machine_type"] == "n2d-standard-8"
    assert len({row.nonce for row in world.job.resources}) == 5


def test_the_same_machine_can_be_taken_as_spot(with_alternatives):
    world, made = with_alternatives("same spot", stock=out_of_stock())
    assert world.job.outcome is Outcome.SUCCEEDED
    models = [body["scheduling"]["provisioningModel"] for body in made]
    assert models == ["STANDARD"] * 4 + ["SPOT"]


def test_a_series_without_quota_leaves_the_region_to_the_others(with_alternatives):
    quotas = Quotas(by_region={"us-central1": {"N2_CPUS": 0}})
    world, made = with_alternatives("n2d-standard-8", quotas=quotas)
    assert world.job.outcome is Outcome.SUCCEEDED
    assert [body["machineType"].rpartition("/")[2] for body in made] == ["n2d-standard-8"]
    assert [entry["blocked"] for entry in world.job.telemetry["capacity"]["preflight"]] == [True]


def test_the_ledger_names_the_machine_where_it_is_not_the_own_one(with_alternatives):
    stock = Stock([Stockout(region="us-central1", first=5)], opened_at=START)
    world, _ = with_alternatives("n2d-standard-8", stock=stock)
    assert world.job.outcome is Outcome.SUCCEEDED
    assert [entry.candidate for entry in world.job.walk.ledger][-2:] == [
        "us-central1/us-central1-f",
        "us-central1/us-central1-a n2d-standard-8",
    ]

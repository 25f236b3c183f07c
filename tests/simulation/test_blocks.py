"""A place that said no is left alone for a while, and not for ever."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

import runtender.engine.budget
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.stock import Stock
from runtender.local.http import google_error
from runtender.local.scenario import Stockout
from runtender.local.simulation.cloud import START
from runtender.local.simulation.rules import BrokenRule
from runtender.local.simulation.weather import INSERT
from runtender.local.simulation.world import CONFIG, ENVIRONMENT
from runtender.model import Outcome, Reason, Walk
from runtender.settings import Settings

MINUTE = timedelta(minutes=1)
CATALOGUE = {
    "regions": {
        "us-central1": {"zones": ["a"]},
        "us-east1": {"zones": ["b"], "subnetwork_uri": "projects/p/regions/us-east1/subnetworks/s"},
    }
}
NO_QUOTA = google_error(403, "quotaExceeded", "Quota 'N2_CPUS' exceeded. Limit: 8.0 in region us-central1.")


@pytest.fixture
def full_at_home(a_world):
    """Play a world whose home region refuses the first insert for quota, and whose other region never has a machine."""

    def play():
        settings = Settings.from_env({**ENVIRONMENT, "SF_COMPUTE_FALLBACK": "gs://code/places.json"})
        stock = Stock([Stockout(region="us-east1")], opened_at=START)
        world = a_world(settings=settings, stock=stock, quotas=Quotas())
        world.cloud.write_object("code", "places.json", json.dumps(CATALOGUE).encode())
        world.weather.plan(INSERT, NO_QUOTA)
        patient = {"gce": {"max_attempts": 0}}
        world.submit(
            {**CONFIG, "compute": {"capacity": patient}}, limits={"capacity_wait": "40m", "run": "20m"}
        )
        world.run(60 * MINUTE)
        world.settle()
        return world

    return play


def test_a_region_whose_quota_was_used_up_is_used_again_after_the_block(full_at_home):
    world = full_at_home()
    assert (world.job.outcome, world.job.reason) == (Outcome.SUCCEEDED, Reason.COMPLETED)
    at_home = [row.since - START for row in world.job.resources if row.location == "us-central1-a"]
    assert len(at_home) == 2
    assert at_home[1] - at_home[0] >= 20 * MINUTE


def test_with_a_block_that_never_ends_the_run_would_find_no_capacity(full_at_home, monkeypatch):
    monkeypatch.setattr(Walk, "blocked_at", lambda self, _now: self.blocked)
    assert full_at_home().job.outcome is Outcome.NO_CAPACITY


def test_with_the_budget_unchecked_the_onlooker_sees_a_create_too_many(a_world, monkeypatch):
    monkeypatch.setattr(runtender.engine.budget.Budget, "draw", lambda _self, _job: None)
    world = a_world()
    world.submit()
    with pytest.raises(BrokenRule, match=r"^budget: 1 creates are sent and 0 were granted"):
        world.run(MINUTE)

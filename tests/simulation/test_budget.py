"""A rush of submits: the budget of creates holds, nobody is lost, the oldest go first."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from runtender.local.compute.quotas import Quotas
from runtender.local.simulation.cloud import START
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.weather import INSERT, TOO_MANY
from runtender.local.simulation.world import CONFIG, ENVIRONMENT
from runtender.model import Outcome
from runtender.settings import Settings

MINUTE = timedelta(minutes=1)
PLENTY = Quotas(regional={"N2_CPUS": 10_000}, by_region={})
QUICK = Behaviour(boot_s=1, work_s=5)


@pytest.fixture
def rush(a_world):
    """Submit `runs` runs within ten seconds under a budget, and see them all come to rest."""

    def make(runs, budget, prepare=lambda _world: None):
        settings = Settings.from_env({**ENVIRONMENT, "SF_API_BUDGET": str(budget)})
        world = a_world(settings=settings, behaviour=QUICK, quotas=PLENTY)
        prepare(world)
        for number in range(runs):
            world.submit({**CONFIG, "run_name": f"run-{number:04d}"})
            world.run(timedelta(seconds=10) / runs)
        world.settle()
        return world

    return make


def per_minute(world):
    return Counter(int((moment - START) / MINUTE) for moment in world.cloud.onlooker.creates)


def test_a_rush_stays_inside_the_budget_and_nobody_is_lost(rush):
    world = rush(60, budget=20)
    assert Counter(job.outcome for job in world.jobs) == {Outcome.SUCCEEDED: 60}
    assert max(per_minute(world).values()) <= 20
    assert len(world.cloud.onlooker.creates) == 60
    assert {job.walk.attempts for job in world.jobs} == {0}, "waiting is charged to nobody"


def test_of_those_who_wait_at_one_counter_the_oldest_goes_first(rush):
    world = rush(40, budget=1)
    placed = [
        job.resources[0].since for job in sorted(world.jobs, key=lambda job: job.accepted_at) if job.resources
    ]
    assert placed == sorted(placed)
    assert max(per_minute(world).values()) == 1


def test_a_rush_holds_the_budget_although_handlers_are_killed(rush):
    kills = [Fate(after=call) for call in ("store.commit", INSERT, "store.get", "store.commit") * 5]
    world = rush(30, budget=10, prepare=lambda world: world.weather.fates.extend(kills))
    assert Counter(job.outcome for job in world.jobs) == {Outcome.SUCCEEDED: 30}
    assert max(per_minute(world).values()) <= 10


def test_a_storm_of_429_delays_and_changes_no_placement(rush):
    world = rush(4, budget=100, prepare=lambda world: world.weather.plan(INSERT, TOO_MANY, times=12))
    assert Counter(job.outcome for job in world.jobs) == {Outcome.SUCCEEDED: 4}
    assert {row.location for job in world.jobs for row in job.resources} == {"us-central1-a"}
    assert {job.walk.attempts for job in world.jobs} == {0}

"""What one job is refused spares the next one the way there, for a while."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.local.compute.stock import Stock
from runtender.local.scenario import Shape, Stockout
from runtender.local.simulation.cloud import START
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.world import CONFIG
from runtender.model import Outcome

MINUTE = timedelta(minutes=1)
QUICK = Behaviour(boot_s=1, work_s=5)
OTHER_KIND = {
    "name": "small",
    "image": "us-docker.pkg.dev/p/r/task:1",
    "command": ["true"],
    "machine_type": "n2-standard-4",
}


@pytest.fixture
def after_a_stock_out(a_world):
    """Make a world in which one run has found zone a empty."""

    def make(**rule):
        stock = Stock([Stockout(zone="us-central1-a", **rule)], opened_at=START)
        world = a_world(stock=stock, behaviour=QUICK)
        world.submit()
        world.run(5 * MINUTE)
        assert walked(world, 0) == ["a", "b"]
        return world

    return make


def walked(world, job):
    return [row.location[-1] for row in world.jobs[job].resources]


def submit_next(world, config, **message):
    world.submit(config, **message)
    world.run(5 * MINUTE)


@pytest.mark.parametrize("shape", list(Shape))
def test_the_next_run_does_not_go_there_first(after_a_stock_out, shape):
    world = after_a_stock_out(shape=shape)
    submit_next(world, {**CONFIG, "run_name": "next"})
    world.settle()
    assert walked(world, 1) == ["b"]


def test_another_kind_of_machine_does(after_a_stock_out):
    world = after_a_stock_out(first=1)
    submit_next(world, OTHER_KIND, kind="task")
    world.settle()
    assert walked(world, 1) == ["a"]


def test_a_zone_that_has_recovered_is_used_again_after_a_while(after_a_stock_out):
    world = after_a_stock_out(first=1)
    world.run(21 * MINUTE)
    submit_next(world, {**CONFIG, "run_name": "next"})
    world.settle()
    assert walked(world, 1) == ["a"]


def test_it_is_last_but_it_is_not_left_out(a_world):
    stock = Stock([Stockout(zone=f"us-central1-{letter}", first=1) for letter in "abcf"], opened_at=START)
    world = a_world(stock=stock, behaviour=QUICK)
    for name in ("one", "two"):
        submit_next(world, {**CONFIG, "run_name": name})
    world.settle()
    assert [walked(world, job) for job in (0, 1)] == [["a", "b", "c", "f", "a"], ["a"]]
    assert {job.outcome for job in world.jobs} == {Outcome.SUCCEEDED}

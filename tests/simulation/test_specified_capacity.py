"""Rows of the specification on the search for capacity that only a whole world can show."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.local.compute.stock import Stock
from runtender.local.scenario import Stockout
from runtender.local.simulation.cloud import START
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.weather import BROKEN_OFF, INSERT
from runtender.model import Outcome, Reason

SUCCESS = (Outcome.SUCCEEDED, Reason.COMPLETED)
MINUTE = timedelta(minutes=1)


def ending(world):
    return world.job.outcome, world.job.reason


def placements_made(world):
    """How many machines were ever begun for our jobs."""
    return len(world.cloud.onlooker.sent)


def dry_once(*zones):
    """Each of the zones has no machine for the first insert."""
    return Stock([Stockout(zone=f"us-central1-{letter}", first=1) for letter in zones], opened_at=START)


@pytest.mark.parametrize(
    "fate",
    [
        pytest.param(Fate(), id="acceptance-Z3 one after the other"),
        pytest.param(
            Fate(after="store.get", freeze_for=timedelta(seconds=5)),
            id="acceptance-Z3 the first waits while the second overtakes it",
        ),
        pytest.param(
            Fate(after="store.commit", freeze_for=timedelta(seconds=5)),
            id="acceptance-Z3 the first has saved and not yet sent",
        ),
    ],
)
def test_a_message_that_comes_twice_makes_one_machine(a_world, fate):
    world = a_world()
    world.weather.fates.append(fate)
    world.weather.arriving.append((timedelta(), timedelta()))
    world.submit()
    world.run(10 * MINUTE)
    world.settle()
    assert ending(world) == SUCCESS
    assert placements_made(world) == 1


@pytest.mark.parametrize((), [pytest.param(id="acceptance-Z4")])
def test_a_machine_whose_insert_timed_out_is_found_and_adopted(a_world):
    world = a_world()
    world.weather.plan(INSERT, BROKEN_OFF, applied=True)
    world.submit()
    world.run(10 * MINUTE)
    world.settle()
    assert ending(world) == SUCCESS
    assert [row.location for row in world.job.resources] == ["us-central1-a"]
    assert placements_made(world) == 1


def ledger(world):
    return [(entry.candidate[-1], entry.verdict, entry.code) for entry in world.job.walk.ledger]


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param([Fate(after=INSERT)], id="acceptance-Z20 after an insert"),
        pytest.param([Fate(after="store.commit")], id="acceptance-Z20 before the first insert"),
        pytest.param([Fate(), Fate(after="store.get")], id="acceptance-Z20 between passes"),
        pytest.param([Fate(after=INSERT)] * 4, id="acceptance-Z20 again and again"),
    ],
)
def test_a_walk_goes_on_where_a_killed_process_left_it(a_world, kills):
    undisturbed, killed = a_world(stock=dry_once(*"abcf")), a_world(stock=dry_once(*"abcf"))
    killed.weather.fates.extend(kills)
    for world in (undisturbed, killed):
        world.submit()
        world.run(14 * MINUTE)
        world.settle()
        assert ending(world) == SUCCESS
    assert ledger(killed) == ledger(undisturbed)
    assert [entry[0] for entry in ledger(killed)] == ["a", "b", "c", "f"]
    assert killed.job.walk.passes == undisturbed.job.walk.passes == 1
    assert killed.job.deadlines.capacity == undisturbed.job.deadlines.capacity


@pytest.mark.parametrize((), [pytest.param(id="acceptance-F24")])
def test_an_attempt_that_was_interrupted_is_no_failed_attempt(a_world):
    world = a_world()
    world.weather.fates.append(Fate(after=INSERT))
    world.submit()
    world.run(timedelta(seconds=30))
    assert (world.job.walk.attempts, world.job.walk.ledger) == (0, ())
    world.settle()
    assert ending(world) == SUCCESS
    assert (world.job.walk.attempts, world.job.walk.ledger) == (0, ())

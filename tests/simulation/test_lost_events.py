"""No single event is needed: whichever is lost, a run ends as it should, and in time (I7)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.weather import CommitFault
from runtender.local.simulation.world import ENVIRONMENT
from runtender.model import Outcome
from runtender.settings import Settings

TICK = timedelta(minutes=1)
# The started and the terminal marker, and every tick of the run.
EVENTS = range(1, 12)


def told_without(a_world, lost, **parts):
    world = a_world(**parts)
    world.weather.arriving.extend([[timedelta()]] * lost + [[]])
    world.submit()
    world.run(timedelta(minutes=30))
    world.settle()
    return world


def delay_of_the_end(world):
    """How long after the worker's last word the outcome was saved."""
    (word,) = world.cloud.onlooker.words.values()
    return world.job.ended_at - word.stored_at


@pytest.mark.parametrize("lost", EVENTS)
def test_a_run_whose_machine_is_gone_ends_within_the_watch_interval_and_two_ticks(a_world, lost):
    world = told_without(a_world, lost, behaviour=Behaviour(work_s=200))
    assert world.job.outcome is Outcome.SUCCEEDED
    # Wakes are spread by up to a tenth.
    assert delay_of_the_end(world) <= 1.1 * world.settings.timing.watch_interval + 2 * TICK


@pytest.mark.parametrize("lost", EVENTS)
def test_a_run_whose_machine_stays_ends_within_two_ticks(a_world, lost):
    stays = Settings.from_env({**ENVIRONMENT, "SF_GUEST_SELF_DELETE": "false"})
    world = told_without(a_world, lost, settings=stays)
    assert world.job.outcome is Outcome.SUCCEEDED
    assert delay_of_the_end(world) <= 2 * TICK


def test_a_submit_without_an_answer_comes_again(a_world):
    world = a_world()
    world.weather.commits.append(CommitFault.LOST)
    world.submit()
    world.run(timedelta(minutes=8))
    world.settle()
    assert world.job.outcome is Outcome.SUCCEEDED

"""Limits on what is alive at once, in whole worlds."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta

import pytest

import runtender.engine.admission
from runtender.capacity.admission import Choice
from runtender.local.compute.quotas import Quotas
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.rules import BrokenRule
from runtender.local.simulation.world import CONFIG, ENVIRONMENT
from runtender.model import Admission, Outcome, Phase
from runtender.settings import Settings

MINUTE = timedelta(minutes=1)
PLENTY = Quotas(regional={"N2_CPUS": 10_000})
QUICK = Behaviour(boot_s=1, work_s=5)


@pytest.fixture
def limited(a_world):
    def make(*limits, behaviour=QUICK, **environment):
        settings = Settings.from_env({**ENVIRONMENT, "SF_LIMITS": json.dumps(limits), **environment})
        return a_world(settings=settings, behaviour=behaviour, quotas=PLENTY)

    return make


def submit(world, name, **message):
    world.submit({**CONFIG, "run_name": name}, **message)
    world.run(timedelta(seconds=1))


def by_name(world):
    return {job.run_id.rpartition("-")[0]: job for job in world.jobs}


def begun(world):
    """Names in the order in which their machines were begun."""
    placed = [(job.resources[0].since, name) for name, job in by_name(world).items() if job.resources]
    return [name for _, name in sorted(placed)]


def most_alive(world):
    """The most jobs that had a machine at one moment, from when each was let in to when it was wholly gone."""
    moments = [(job.admitted_at, 1) for job in world.jobs] + [(job.history[-1].at, -1) for job in world.jobs]
    alive, most = 0, 0
    for _, change in sorted(moments):
        alive += change
        most = max(most, alive)
    return most


def test_the_rest_wait_their_turn_and_the_next_begins_as_one_is_gone(limited):
    world = limited({"jobs": 2}, behaviour=Behaviour(boot_s=1, work_s=240))
    for number in range(6):
        submit(world, f"run-{number}")
    waiting = [job for job in world.jobs if job.admission is Admission.WAITING]
    assert {(job.phase, job.outcome) for job in waiting} == {(Phase.PENDING, None)}
    assert len(waiting) == 4
    world.settle()
    assert Counter(job.outcome for job in world.jobs) == {Outcome.SUCCEEDED: 6}
    assert begun(world) == [f"run-{number}" for number in range(6)]
    assert most_alive(world) == 2
    gone = sorted(job.history[-1].at for job in world.jobs)
    let_in = sorted(job.admitted_at for job in world.jobs)
    assert let_in[2:] == gone[:4], "not at the next tick: at once"


def test_waiting_for_a_limit_takes_nothing_from_the_wait_for_capacity(limited):
    world = limited({"jobs": 1}, behaviour=Behaviour(boot_s=1, work_s=600))
    for number in range(4):
        submit(world, f"run-{number}")
    world.settle()
    assert Counter(job.outcome for job in world.jobs) == {Outcome.SUCCEEDED: 4}


def test_one_labels_queue_holds_up_nobody_else(limited):
    world = limited({"jobs": 9}, {"label": {"team": "red"}, "jobs": 1})
    for number in range(3):
        submit(world, f"red-{number}", labels={"team": "red"})
    submit(world, "blue", labels={"team": "blue"})
    assert begun(world) == ["red-0", "blue"]
    world.settle()
    assert begun(world) == ["red-0", "blue", "red-1", "red-2"]


def test_a_higher_priority_goes_first(limited):
    world = limited({"jobs": 1})
    for name, priority in (("first", 0), ("low", -1), ("usual", 0), ("high", 5)):
        submit(world, name, priority=priority)
    world.settle()
    assert begun(world) == ["first", "high", "usual", "low"]


def test_a_cancelled_one_leaves_the_queue(limited):
    world = limited({"jobs": 1})
    for name in ("first", "second", "third"):
        submit(world, name)
    world.cancel(by_name(world)["second"].run_id)
    world.settle()
    assert by_name(world)["second"].outcome is Outcome.CANCELLED
    assert begun(world) == ["first", "third"]


def test_a_job_that_no_limit_ever_lets_begin_is_refused(limited):
    world = limited({"vcpus": 4})
    submit(world, "too-large")
    assert world.jobs == []
    world.settle()


@pytest.mark.parametrize("call", ["store.commit", "store.find", "compute.instances.insert"])
def test_whoever_is_killed_while_letting_in_holds_up_the_queue_for_a_tick_at_most(limited, call):
    world = limited({"jobs": 1})
    world.weather.fates.extend([Fate(after=call)] * 12)
    for number in range(4):
        submit(world, f"run-{number}")
    world.settle()
    assert Counter(job.outcome for job in world.jobs) == {Outcome.SUCCEEDED: 4}
    assert most_alive(world) == 1


def test_with_the_guard_unwatched_the_onlooker_sees_one_let_in_too_many(limited, monkeypatch):
    monkeypatch.setattr(runtender.engine.admission, "is_full", lambda _limits, _live: False)
    monkeypatch.setattr(
        runtender.engine.admission,
        "choose",
        lambda _limits, _live, waiting: Choice(jobs=tuple(waiting), closed=True),
    )
    world = limited({"jobs": 1}, behaviour=Behaviour(boot_s=1, work_s=600))
    submit(world, "first")
    with pytest.raises(BrokenRule, match=r"^limits: .* is let in beside"):
        submit(world, "second")

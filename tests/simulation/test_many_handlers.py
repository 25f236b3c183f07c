"""Fifty handlers on one job at once do what one would have done."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count
from random import Random

import pytest

from runtender.engine import Engine
from runtender.engine.intake import Intake
from runtender.errors import Retryable
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.invocations import Fate, tapped
from runtender.local.simulation.weather import INSERT
from runtender.local.simulation.world import CONFIG
from runtender.local.store import MemoryStore, SqliteStore
from runtender.model import Outcome, Phase

CROWD = 50


class StandingClock:
    """The world's time, which stands still while threads run."""

    def __init__(self, world):
        self.now = lambda: world.now
        self._numbers = count()
        self._chance = Random(0)

    def sleep(self, seconds):
        threading.Event().wait(min(seconds, 0.05))

    def token(self):
        return f"thread-token-{next(self._numbers)}"

    def jitter(self):
        return self._chance.random()


@pytest.fixture(params=["memory", "sqlite"])
def a_crowded_world(request, a_world, tmp_path):
    """A world, and its plane made safe for threads: the simulated services take one call at a time, the store many."""
    store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.sqlite")
    world = a_world(store=store, behaviour=Behaviour(work_s=120))
    lock = threading.Lock()

    def one_at_a_time(crossing, call):
        if crossing.looks and crossing.name.startswith("store."):
            return call()
        with lock:
            return call()

    ports = {
        name: tapped(getattr(world.plane, name), name, one_at_a_time)
        for name in ("store", "objects", "topics")
    }
    apis = {name: tapped(api, "api", one_at_a_time) for name, api in world.plane.apis.items()}
    yield world, replace(world.plane, **ports, apis=apis, clock=StandingClock(world))
    if isinstance(store, SqliteStore):
        store.close()


def all_at_once(work):
    gate = threading.Barrier(CROWD)

    def go(number):
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(CROWD) as pool:
        return list(pool.map(go, range(CROWD)))


def step_once(plane, key):
    """Step as an event would; what is to come again is left to the ticks."""
    with suppress(Retryable):
        Engine(plane).step(key, thorough=True)


def test_fifty_copies_of_a_submit_make_one_run_and_one_machine(a_crowded_world):
    world, plane = a_crowded_world
    body = json.dumps({"config": CONFIG, "request_id": "one"}).encode()

    def submit(number):
        receipt = Intake(plane).receive(body, message_id=f"m-{number}", published_at=world.now)
        Engine(plane).step_all(receipt.job_keys, thorough=True)
        return receipt.run_id

    assert len(set(all_at_once(submit))) == 1
    assert len(world.cloud.machines()) == len(world.job.resources) == 1
    world.settle()
    assert world.job.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    "moment_s", [0, 5, 60, 153, 154], ids=["new", "booting", "working", "ended", "stopping"]
)
def test_fifty_steps_of_one_job_are_as_good_as_one(a_crowded_world, moment_s):
    world, plane = a_crowded_world
    world.submit()
    if moment_s:
        world.run(timedelta(seconds=1))
        world.cloud.pass_time(timedelta(seconds=moment_s))
    else:
        (delivery,) = world.due()
        world.deliver(delivery, Fate(after="store.commit"))
    key = world.job.job_key
    all_at_once(lambda _number: step_once(plane, key))
    phases = [row.phase for row in world.job.history]
    assert len(phases) == len(set(phases))
    assert len(world.cloud.onlooker.sent) == 1
    world.settle()
    assert (world.job.phase, world.job.outcome) == (Phase.DONE, Outcome.SUCCEEDED)


@pytest.mark.parametrize("seed", range(5))
def test_fifty_interleaved_copies_of_each_event_are_as_good_as_one(a_world, seed):
    chance, world = Random(seed), a_world()
    world.weather.arriving.extend([[timedelta()] * CROWD] * 3)
    world.weather.fates.extend(
        Fate(freeze_at=chance.randrange(1, 40, 2), freeze_for=timedelta(seconds=chance.choice((1, 5, 70))))
        for _ in range(3 * CROWD)
    )
    world.submit()
    world.run(timedelta(minutes=8))
    world.settle()
    assert world.job.outcome is Outcome.SUCCEEDED
    assert len(world.job.resources) == 1
    assert INSERT in {call for invocation in world.invocations for call in invocation.calls}

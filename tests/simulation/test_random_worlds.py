"""Worlds drawn by chance: two thousand of them, each with its own users, machines or pods, and weather, keep the rules.

A world that breaks one names its kind and seed: `python -m runtender.local.simulation --kind clusters --seed N` tells its
story.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import pytest

from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.world import CONFIG
from runtender.local.simulation.worlds import Kind, play

# Those with a cluster take about twice the time.
WORLDS = {Kind.MACHINES: 1800, Kind.CLUSTERS: 200}
SHARE = 25

kinds = pytest.mark.parametrize("kind", list(Kind))


@pytest.mark.parametrize(
    ("kind", "first"), [(kind, first) for kind, count in WORLDS.items() for first in range(0, count, SHARE)]
)
def test_the_rules_hold_in_worlds_from_seed(kind, first):
    for seed in range(first, first + SHARE):
        play(seed, kind)


def test_only_ticks_that_find_the_world_at_rest_are_left_out(a_world):
    def ticks(span, **options):
        before = len(world.invocations)
        world.run(span, **options)
        return sum(one.kind == world.settings.tick_topic for one in world.invocations[before:])

    world = a_world(behaviour=Behaviour(work_s=400))
    world.submit()
    assert ticks(timedelta(minutes=5), idle_ticks=0) == 4, "there is work"
    world.settle()
    assert ticks(timedelta(minutes=10), idle_ticks=2) == 2
    assert ticks(timedelta(minutes=10), idle_ticks=2) == 0, "they are the same rest"
    assert ticks(timedelta(minutes=10)) == 10
    world.submit({**CONFIG, "run_name": "another"})
    assert ticks(timedelta(minutes=5), idle_ticks=2) == 5


def story(seed, kind=Kind.MACHINES):
    world = play(seed, kind)
    return world.story(last=len(world.cloud.log))


@kinds
def test_a_seed_tells_the_same_story_each_time(kind):
    assert story(29, kind) == story(29, kind)


@kinds
def test_a_seed_tells_the_same_story_in_another_process(kind):
    command = [sys.executable, "-m", "runtender.local.simulation", "--kind", kind, "--seed", "29"]
    stories = {
        subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(stories) == 1
    assert next(iter(stories)).startswith(story(29, kind))


@kinds
def test_seeds_tell_different_stories(kind):
    assert len({story(seed, kind) for seed in range(5)}) == 5

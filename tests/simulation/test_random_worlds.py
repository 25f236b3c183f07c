"""Worlds drawn by chance: two thousand of them, each with its own users, machines and weather, keep the rules.

A world that breaks one names its seed: `python -m runtender.local.simulation --seed N` tells its story.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from runtender.local.simulation.worlds import play

WORLDS = 2000
SHARE = 50


@pytest.mark.parametrize("first", range(0, WORLDS, SHARE))
def test_the_rules_hold_in_worlds_from_seed(first):
    for seed in range(first, first + SHARE):
        play(seed)


def story(seed):
    world = play(seed)
    return world.story(last=len(world.cloud.log))


def test_a_seed_tells_the_same_story_each_time():
    assert story(29) == story(29)


def test_a_seed_tells_the_same_story_in_another_process():
    command = [sys.executable, "-m", "runtender.local.simulation", "--seed", "29"]
    stories = {
        subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(stories) == 1
    assert next(iter(stories)).startswith(story(29))


def test_seeds_tell_different_stories():
    assert len({story(seed) for seed in range(5)}) == 5

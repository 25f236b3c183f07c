"""Worlds for the tests; a world that a test leaves open is closed behind it. And all that can be played, for mutants."""

from __future__ import annotations

import logging
from itertools import islice

import pytest

from runtender.local.simulation.plots import BrokenPlot, crashes
from runtender.local.simulation.world import World
from runtender.local.simulation.worlds import BrokenWorld, play

WORLDS_PER_MUTANT = 300
CRASHES_PER_PLOT = 20


@pytest.fixture(autouse=True)
def _quiet():
    """The plane logs every trouble that is made here on purpose."""
    logger = logging.getLogger("runtender")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


@pytest.fixture
def a_world():
    """Make worlds: `a_world(behaviour=Behaviour(exit_code=3))`."""
    made: list[World] = []

    def make(**parts) -> World:
        made.append(World(**parts))
        return made[-1]

    yield make
    for world in made:
        world.close()


def _tellings(plots, long_plots, kind):
    """Everything that the other tests play, the short things first."""
    for plot in (*plots, *long_plots):
        yield lambda plot=plot: plot.play({})
    for seed in range(WORLDS_PER_MUTANT):
        yield lambda seed=seed: play(seed, kind)
    for plot in plots:
        for fates in islice(crashes(plot.points()), CRASHES_PER_PLOT):
            yield lambda plot=plot, fates=fates: plot.play(fates)


@pytest.fixture
def first_broken_rule():
    """Play plots and worlds until one breaks a rule: `first_broken_rule(PLOTS, [ORPHAN], Kind.MACHINES)`."""

    def find(plots, long_plots, kind) -> str:
        for tell in _tellings(plots, long_plots, kind):
            try:
                tell()
            except (BrokenPlot, BrokenWorld) as broken:
                return str(broken)
        return "no rule was broken"

    return find

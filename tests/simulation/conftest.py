"""Worlds for the tests; a world that a test leaves open is closed behind it."""

from __future__ import annotations

import logging

import pytest

from runtender.local.simulation.world import World


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

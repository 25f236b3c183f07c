"""The users of a world drawn by chance: they submit again, cancel, and ask for another try."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from runtender.local.simulation.world import World

_AGAIN: tuple[Mapping[str, Any], ...] = ({}, {"force": True}, {"every": "10m"})
_UNKNOWN_RUN = "nobody-0123456789ab"


class Users:
    """Users of one world. `message` draws what they submit."""

    def __init__(self, world: World, chance: Random, message: Callable[[], Mapping[str, Any]]) -> None:
        self._world = world
        self._chance = chance
        self._message = message

    def resubmit(self) -> None:
        """Submit something, perhaps the same as before."""
        again = self._chance.choice(_AGAIN)
        self._world.submit(**self._message(), **again)

    def cancel(self) -> None:
        """Cancel some run."""
        self._world.cancel(self._some_run())

    def retry(self) -> None:
        """Ask for another try of some run."""
        self._world.publish({"action": "retry", "run_id": self._some_run()})

    def _some_run(self) -> str:
        runs = sorted(self._world.cloud.onlooker.runs)
        return self._chance.choice(runs) if runs else _UNKNOWN_RUN

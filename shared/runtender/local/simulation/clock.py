"""Time and chance in the hands of a simulation: nothing passes unless somebody lets it, and the same seed gives the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random


class SimClock:
    """The `Clock` of every handler. `time` is the true time, `skew` how far the running handler's own clock is off."""

    def __init__(self, start: datetime, chance: Random, pass_time: Callable[[timedelta], None]) -> None:
        self.time = start
        self.skew = timedelta()
        self._chance = chance
        self._pass_time = pass_time
        self._tokens = 0

    def now(self) -> datetime:
        return self.time + self.skew

    def true_time(self) -> datetime:
        """Return the time that servers see, whatever the running handler believes."""
        return self.time

    def sleep(self, seconds: float) -> None:
        self._pass_time(timedelta(seconds=seconds))

    def token(self) -> str:
        self._tokens += 1
        return f"token-{self._tokens}"

    def jitter(self) -> float:
        return self._chance.random()

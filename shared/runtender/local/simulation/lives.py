"""Lives that are played: each says how long it naps, and goes on when the nap is over or something wakes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from datetime import datetime, timedelta

from runtender.local.compute.agenda import Agenda

Life = Generator[float, None, None]
"""What somebody does, from nap to nap; a nap is in seconds."""


class Lives:
    """The lives of all machines, or of all pods, each by its id."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._lives: dict[str, Life] = {}
        self._turns: Counter[str] = Counter()

    def __contains__(self, name: str) -> bool:
        return name in self._lives

    def begin(self, name: str, life: Life, now: datetime) -> None:
        """Let a life begin."""
        self._lives[name] = life
        self.wake(name, now)

    def wake(self, name: str, now: datetime) -> None:
        """Let a life go on now, whatever it naps for."""
        self._turns[name] += 1
        turn = self._turns[name]
        try:
            nap = next(self._lives[name])
        except StopIteration:
            self._lives.pop(name, None)
            return

        def go_on(at: datetime) -> None:
            if self._turns[name] == turn and name in self._lives:
                self.wake(name, at)

        self._agenda.at(now + timedelta(seconds=nap), go_on)

    def end(self, name: str) -> None:
        """Let a life be over, wherever it is."""
        life = self._lives.pop(name, None)
        if life is not None:
            self._turns[name] += 1
            life.close()

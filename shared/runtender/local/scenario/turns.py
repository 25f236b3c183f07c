"""Counts what rules match, and says whose turn it is."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

from runtender.local.scenario.rules import Turn


class Turns:
    """The turns of a list of rules, by their place in it. Safe for threads: every service asks from its own."""

    def __init__(self, turns: Sequence[Turn], elapsed: Callable[[], timedelta]) -> None:
        self._turns = tuple(turns)
        self._elapsed = elapsed
        self._matched: Counter[int] = Counter()
        self._first_hit: dict[int, timedelta] = {}
        self._gate = threading.Lock()

    def take(self, index: int) -> bool:
        """Count something that rule `index` matches; true when it is to be hit."""
        turn, now = self._turns[index], self._elapsed()
        with self._gate:
            if now < turn.after or (turn.until is not None and now >= turn.until):
                return False
            self._matched[index] += 1
            place = self._matched[index] - turn.skip
            if place <= 0 or (turn.first is not None and place > turn.first):
                return False
            since = self._first_hit.setdefault(index, now)
            return turn.lasting is None or now < since + turn.lasting


class Hits:
    """Counts what rules have hit, by their place in a list. Safe for threads: every blow comes from its own."""

    def __init__(self) -> None:
        self._hits: Counter[int] = Counter()
        self._gate = threading.Lock()

    def take(self, index: int, first: int | None) -> bool:
        """Count something that rule `index` could hit; true when it is among the `first` (None: whatever the number)."""
        with self._gate:
            self._hits[index] += 1
            return first is None or self._hits[index] <= first

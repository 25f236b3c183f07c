"""What is still to happen, and when. The simulated cloud has no clock of its own: whoever drives it says how late it is."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime

Action = Callable[[datetime], None]


class Agenda:
    """Actions in order of their due time; of two that are due together, the one noted first."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, Action]] = []
        self._noted = 0

    def at(self, due: datetime, action: Action) -> None:
        """Note an action. It is handed its own due time, so that a late look changes nothing."""
        self._noted += 1
        heapq.heappush(self._heap, (due, self._noted, action))

    def run(self, now: datetime) -> None:
        """Carry out all that is due, also what those actions note for a time that has passed."""
        while self._heap and self._heap[0][0] <= now:
            due, _, action = heapq.heappop(self._heap)
            action(due)

    def next_due(self) -> datetime | None:
        """Return when the next action is due; None when nothing is."""
        return self._heap[0][0] if self._heap else None

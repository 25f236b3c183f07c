"""How time passes for a simulated service that is served on real time: a thread sleeps until something is due there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType
from typing import Generic, Protocol, TypeVar

Event = TypeVar("Event")
Event_co = TypeVar("Event_co", covariant=True)

# The services' clock may jump, which nobody tells.
_LONGEST_S = 0.5
_SHORTEST_S = 0.002


class Timed(Protocol[Event_co]):
    """A core without a clock, as those of Compute Engine and of a cluster are."""

    def advance(self, now: datetime) -> tuple[Event_co, ...]:
        """Let everything due at `now` happen; return all events since the last call, also those of requests."""

    def next_due(self) -> datetime | None:
        """Return when something will happen by itself; None when nothing will."""


class Pulse(AbstractContextManager["Pulse[Event]"], Generic[Event]):
    """The gate of a core, and its time: who calls the core does so within it, one at a time.

    with pulse:
        core.delete(...)

    After each such call the thread looks anew at what has happened and what is due next.
    """

    def __init__(self, core: Timed[Event], now: Callable[[], datetime]) -> None:
        self.gate = threading.Lock()
        """For calls that change nothing, and so need no look."""
        self._core = core
        self._now = now
        self._stirred = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def run(self, apply: Callable[[Event], None]) -> None:
        """Let time pass from now on, and hand every event to `apply`, in order, from one thread."""
        self._thread = threading.Thread(target=self._beat, args=(apply,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let no more time pass. May be called twice."""
        self._closed = True
        self._stirred.set()
        if self._thread:
            self._thread.join()

    def __enter__(self) -> Pulse[Event]:
        self.gate.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.release()
        self._stirred.set()

    def _beat(self, apply: Callable[[Event], None]) -> None:
        while not self._closed:
            self._stirred.clear()
            with self.gate:
                events = self._core.advance(self._now())
                due = self._core.next_due()
            for event in events:
                apply(event)
            if not events:
                self._stirred.wait(self._span(due))

    def _span(self, due: datetime | None) -> float:
        """Return the seconds that may be slept."""
        left = _LONGEST_S if due is None else (due - self._now()).total_seconds()
        return min(max(left, _SHORTEST_S), _LONGEST_S)

"""Handlers at work at the same time, on told time: each call takes a while, and meanwhile others go on.

The order is the same in every run, so that what is counted is, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.bench.world import ToldClock

from runtender.engine import Plane
from runtender.errors import Conflict
from runtender.local.compute.agenda import Agenda
from runtender.local.simulation.invocations import Crossing, Fiber, tapped

CONFLICTS = "conflicts"
# What calls take on an ordinary day, in seconds.
_TAKES = {"store.get": 0.010, "store.commit": 0.025}
_API_TAKES = 0.050


class Handler:
    """One handler, and the calls that it has made."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.calls: Counter[str] = Counter()
        self.fiber = Fiber(work)


class Overlap:
    """Lets handlers go on in turn. Only one of them really runs at any moment."""

    def __init__(self, clock: ToldClock) -> None:
        self._clock = clock
        self._agenda = Agenda()
        self._running: Handler | None = None

    def tap(self, plane: Plane) -> Plane:
        """Return the plane for handlers that are to be begun here: its calls take their time and are counted."""
        apis = {name: tapped(api, name, self._call) for name, api in plane.apis.items()}
        # Objects are also read by threads of a handler's own, which cannot wait here: they answer at once.
        objects = tapped(plane.objects, "storage", self._count)
        store = tapped(plane.store, "store", self._call)
        return replace(plane, store=store, objects=objects, apis=apis, clock=_OverlapClock(self, self._clock))

    def begin(self, at: datetime, work: Callable[[], None]) -> Handler:
        """Let a handler begin at a moment to come."""
        handler = Handler(work)
        self._agenda.at(at, lambda _at: self._resume(handler))
        return handler

    def run(self, until: datetime) -> None:
        """Let time pass, and the handlers go on."""
        while (due := self._agenda.next_due()) is not None and due <= until:
            self._clock.moment = due
            self._agenda.run(due)
        self._clock.moment = until

    def wait(self, seconds: float) -> None:
        """Let the handler that calls this wait."""
        handler = self._running
        assert handler is not None
        self._agenda.at(self._clock.now() + timedelta(seconds=seconds), lambda _at: self._resume(handler))
        handler.fiber.park()

    def _resume(self, handler: Handler) -> None:
        self._running = handler
        handler.fiber.resume()
        self._running = None

    def _call(self, crossing: Crossing, call: Callable[[], Any]) -> Any:
        self.wait(_TAKES.get(crossing.name, _API_TAKES))
        return self._count(crossing, call)

    def _count(self, crossing: Crossing, call: Callable[[], Any]) -> Any:
        assert self._running is not None
        self._running.calls[crossing.name] += 1
        try:
            return call()
        except Conflict:
            self._running.calls[CONFLICTS] += 1
            raise


class _OverlapClock:
    """The clock of a handler: to sleep is to let others go on."""

    def __init__(self, overlap: Overlap, clock: ToldClock) -> None:
        self.now, self.token, self.jitter = clock.now, clock.token, clock.jitter
        self.sleep = overlap.wait

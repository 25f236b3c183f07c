"""The time of the simulated services, which a scenario can let jump, and what is to happen at some of its moments."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from types import TracebackType

from runtender.local.http import utc_now

_CLOSE_WAIT_S = 5.0


class CloudClock:
    """What the services read as the time. Real time, until it jumps; `scale` cloud seconds pass in each real one."""

    def __init__(self, scale: float) -> None:
        self._shift = timedelta()
        self._scale = scale
        self.opened_at = utc_now()

    def now(self) -> datetime:
        """Return the moment, as the services put it on messages, objects and machines."""
        return utc_now() + self._shift

    def elapsed(self) -> timedelta:
        """Return how long the cloud has been there, as a scenario counts it."""
        return (self.now() - self.opened_at) * self._scale

    def jump(self, by: timedelta) -> None:
        """Go ahead or back, by a span as a scenario counts it."""
        self._shift += by / self._scale


class Timers(AbstractContextManager["Timers"]):
    """Actions that wait for their time, each in a thread of its own, until it is closed."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._timers: list[threading.Timer] = []
        self._gate = threading.Lock()
        self._closed = False

    def after(self, span: timedelta, action: Callable[[], object]) -> None:
        """Do something after a span as a scenario counts it; nothing any more once this is closed."""
        timer = threading.Timer(span.total_seconds() / self._scale, action)
        timer.daemon = True
        with self._gate:
            if not self._closed:
                self._timers.append(timer)
                timer.start()

    def close(self) -> None:
        """Drop what has not begun, and wait for what has. May be called twice."""
        with self._gate:
            self._closed = True
            timers, self._timers = self._timers, []
        for timer in timers:
            timer.cancel()
        for timer in timers:
            timer.join(_CLOSE_WAIT_S)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

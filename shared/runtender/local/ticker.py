"""Stands in for Cloud Scheduler: one tick a minute, in the time scale of the local cloud."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from types import TracebackType

from runtender.local.http import utc_now

Publish = Callable[[str, bytes, Mapping[str, str], datetime], object]
"""Takes a topic, a body, attributes and the moment."""

TICK_PERIOD = timedelta(seconds=60)


class Ticker(AbstractContextManager["Ticker"]):
    """Publishes a tick at once and then each period until `close`. Missed ticks are not made up for."""

    def __init__(
        self,
        publish: Publish,
        topic: str,
        *,
        period: timedelta = TICK_PERIOD,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._publish = publish
        self._topic = topic
        self._period = period
        self._now = now
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop ticking. May be called twice."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        started = self._now()
        while not self._closed.is_set():
            now = self._now()
            self._publish(self._topic, json.dumps({"tick": now.isoformat()}).encode(), {}, now)
            # By the schedule, not by the last tick: small delays must not add up.
            late = (self._now() - started) % self._period
            self._closed.wait((self._period - late).total_seconds())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

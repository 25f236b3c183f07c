"""Carries due deliveries to their endpoints, several at a time, as Pub/Sub's push does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import datetime

import requests

from runtender.local.http import utc_now
from runtender.local.topics.core import TopicsCore
from runtender.local.topics.messages import Delivery, Subscription, push_body

# What Pub/Sub takes for an acknowledgement; anything else is a failed attempt.
_ACKNOWLEDGED = frozenset({102, 200, 201, 202, 204})
# Enough that a slow handler does not hold up the others, few enough for a small machine.
_PARALLEL = 16
# With nothing due the loop sleeps until something is published, at most this long.
_IDLE_S = 1.0
_CLOSE_WAIT_S = 5.0


class Pusher:
    """Threads that push what a core has due. `changed` guards the core and is notified when it changed."""

    def __init__(
        self,
        core: TopicsCore,
        changed: threading.Condition,
        *,
        now: Callable[[], datetime] = utc_now,
        parallel: int = _PARALLEL,
    ) -> None:
        self._core = core
        self._changed = changed
        self._now = now
        self._parallel = parallel
        self._in_flight: set[threading.Thread] = set()
        self._closed = False
        self._loop = threading.Thread(target=self._run, daemon=True)
        self._loop.start()

    def close(self) -> None:
        """Begin nothing more, and wait a few seconds for deliveries under way. May be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            under_way = list(self._in_flight)
        self._loop.join()
        for thread in under_way:
            thread.join(_CLOSE_WAIT_S)

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                for delivery in self._due():
                    self._start(self._core.begin(delivery, self._now()))
                self._changed.wait(self._pause_s())

    def _due(self) -> list[Delivery]:
        free = self._parallel - len(self._in_flight)
        due = [one for one in self._core.due(self._now()) if one.subscription.endpoint is not None]
        return due[:free]

    def _pause_s(self) -> float:
        # Full hands wait for a delivery to end, which notifies; a clock would only spin.
        next_change = self._core.next_change() if len(self._in_flight) < self._parallel else None
        if next_change is None:
            return _IDLE_S
        return min(max((next_change - self._now()).total_seconds(), 0.0), _IDLE_S)

    def _start(self, delivery: Delivery) -> None:
        thread = threading.Thread(target=self._deliver, args=(delivery,), daemon=True)
        self._in_flight.add(thread)
        thread.start()

    def _deliver(self, delivery: Delivery) -> None:
        body = json.dumps(push_body(delivery, self._core.project)).encode()
        acknowledged = post_push(delivery.subscription, body)
        with self._changed:
            self._in_flight.discard(threading.current_thread())
            if acknowledged:
                self._core.ack(delivery.ack_id)
            else:
                self._core.nack(delivery.ack_id, self._now())
            self._changed.notify_all()


def post_push(subscription: Subscription, body: bytes) -> bool:
    """Send one push request to a subscription's endpoint; return whether it was acknowledged.

    It was not where it was refused, broke off, or took longer than the acknowledgement deadline.
    """
    with requests.Session() as session:
        # A proxy or a .netrc of the environment has no business on the loopback address.
        session.trust_env = False
        try:
            answer = session.post(
                subscription.endpoint or "",
                data=body,
                headers={"Content-Type": "application/json"},
                timeout=subscription.ack_deadline.total_seconds(),
                allow_redirects=False,
            )
        except requests.RequestException:
            return False
    return answer.status_code in _ACKNOWLEDGED

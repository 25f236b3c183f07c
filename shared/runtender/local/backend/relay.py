"""The way from the Pub/Sub emulator to the functions, on which a scenario's rules about events apply.

The emulator pushes here, and what a function answers is passed back to it: acknowledgement, back-off and dead letters are the
emulator's. Only an event that a scenario doubles or holds up is acknowledged at once, and carried from here.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType

from runtender.local.http import HttpRequest, HttpResponse, google_error, serve, utc_now
from runtender.local.topics import Arrivals, Message, Subscription, once, post_push
from runtender.wire.envelope import read_delivery
from runtender.wire.events import read_message

_TAKEN = HttpResponse(status=204)
_NOT_TAKEN = HttpResponse(status=503)
_AT_ONCE = (timedelta(0),)


class PushRelay(AbstractContextManager["PushRelay"]):
    """Serves until `close`. A push subscription among `subscriptions` pushes to its `endpoint` here."""

    def __init__(self, subscriptions: Iterable[Subscription], arrivals: Arrivals = once) -> None:
        self._subscriptions = {one.name: one for one in subscriptions if one.endpoint is not None}
        self._arrivals = arrivals
        self._delivered: Counter[str] = Counter()
        # Those whose next push is a repeated one, of which no rule is to be asked again.
        self._failed: set[tuple[str, str]] = set()
        self._gate = threading.Lock()
        self._closed = threading.Event()
        self._server = serve(self._handle)

    def endpoint(self, subscription: Subscription) -> str:
        """Return where the emulator is to push a subscription's messages."""
        return f"{self._server.url}/{subscription.name}"

    def delivered(self) -> Mapping[str, int]:
        """Return how many messages each subscription has delivered to its function."""
        with self._gate:
            return {name: self._delivered[name] for name in self._subscriptions}

    def close(self) -> None:
        """Stop. What is being carried from here is dropped. May be called twice."""
        self._closed.set()
        self._server.close()

    def _handle(self, request: HttpRequest) -> HttpResponse:
        subscription = self._subscriptions.get(request.segments[0])
        if subscription is None:
            return google_error(404, "notFound", f"no subscription pushes to {request.path}")
        message = _message(subscription, request.body)
        delays = self._delays(subscription, message)
        if delays == _AT_ONCE:
            return _TAKEN if self._deliver(subscription, message, request.body) else _NOT_TAKEN
        for delay in delays:
            carried = (subscription, message, request.body, delay)
            threading.Thread(target=self._carry, args=carried, daemon=True).start()
        return _TAKEN

    def _delays(self, subscription: Subscription, message: Message) -> tuple[timedelta, ...]:
        with self._gate:
            again = (subscription.name, message.id) in self._failed
        return _AT_ONCE if again else tuple(self._arrivals(subscription, message))

    def _deliver(self, subscription: Subscription, message: Message, body: bytes) -> bool:
        taken = post_push(subscription, body)
        key = (subscription.name, message.id)
        with self._gate:
            if taken:
                self._delivered[subscription.name] += 1
                self._failed.discard(key)
            else:
                self._failed.add(key)
        return taken

    def _carry(self, subscription: Subscription, message: Message, body: bytes, pause: timedelta) -> None:
        attempts = 0
        while not self._closed.wait(pause.total_seconds()) and not self._deliver(subscription, message, body):
            attempts += 1
            pause = subscription.backoff(attempts)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _message(subscription: Subscription, body: bytes) -> Message:
    read = read_message(read_delivery({}, body), utc_now())
    return Message(
        id=read.message_id,
        topic=subscription.topic,
        body=read.body,
        attributes=read.attributes,
        published_at=read.published_at,
    )

"""The running Pub/Sub of a local cloud: a core, its REST server, and its pusher, behind one lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType
from typing import Any

from runtender.local.http import Faults, HttpRequest, HttpResponse, no_faults, serve, utc_now
from runtender.local.topics.core import TopicsCore
from runtender.local.topics.messages import Message
from runtender.local.topics.push import Pusher
from runtender.local.topics.rest import TopicsApi


class TopicsServer(AbstractContextManager["TopicsServer"]):
    """Serves a core until `close`. `url` is what SF_TOPICS_ENDPOINT takes."""

    def __init__(
        self,
        core: TopicsCore,
        *,
        port: int = 0,
        faults: Faults = no_faults,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._core = core
        self._api = TopicsApi(core, faults)
        self._now = now
        self._changed = threading.Condition()
        self._server = serve(self._handle, port=port)
        self._pusher = Pusher(core, self._changed, now=now)
        self.url = self._server.url
        self.port = self._server.port

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str], now: datetime) -> str:
        """Publish from this process: what the object server's notifications and the ticker call."""
        with self._changed:
            message_id = self._core.publish(topic, body, attributes, now)
            self._changed.notify_all()
        return message_id

    def counts(self) -> dict[str, Any]:
        """Return the traffic so far, as `TopicsCore.counts` does."""
        with self._changed:
            return self._core.counts()

    def waiting(self, subscription: str) -> tuple[Message, ...]:
        """Return what a subscription holds, as `TopicsCore.waiting` does."""
        with self._changed:
            return self._core.waiting(subscription)

    def close(self) -> None:
        """Stop the server and the pusher. May be called twice."""
        self._server.close()
        self._pusher.close()

    def _handle(self, request: HttpRequest) -> HttpResponse:
        with self._changed:
            answer = self._api.handle(request, self._now())
            self._changed.notify_all()
        return answer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

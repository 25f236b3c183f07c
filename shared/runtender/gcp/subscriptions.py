"""Reading Pub/Sub for people: what waits in a pull subscription, and which topics there are.

No entry point needs this; the command line does, for dead letters and for its doctor.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.auth.exceptions import GoogleAuthError

from runtender.errors import Rejected, Retryable
from runtender.ports import Held

if TYPE_CHECKING:
    from google.pubsub_v1 import PublisherClient, SubscriberClient
    from google.pubsub_v1.types import PubsubMessage

_TRY_S = 5.0
_PATIENCE = timedelta(seconds=10)
# Pub/Sub holds a pull open while nothing waits; whoever asks what there is should not be held.
_PULL_S = 3.0
_REFUSED = (exceptions.Forbidden, exceptions.InvalidArgument, exceptions.NotFound, exceptions.Unauthorized)


class PubSubSubscriptions:
    """The Subscriptions port. Honours PUBSUB_EMULATOR_HOST, as the clients do."""

    def __init__(self, project: str, *, patience: timedelta = _PATIENCE) -> None:
        """Use subscriptions and topics of `project`; `patience` bounds a call with all its repeats."""
        self._project = project
        self._repeats = Retry(
            predicate=if_exception_type(exceptions.ServiceUnavailable),
            initial=0.2,
            maximum=2.0,
            timeout=patience.total_seconds(),
        )
        self._lock = threading.Lock()
        self._made: tuple[SubscriberClient, PublisherClient] | None = None

    def pull(self, subscription: str, limit: int) -> list[Held]:
        name = self._subscription(subscription)
        with _asked(name):
            try:
                answer = self._clients()[0].pull(
                    request={"subscription": name, "max_messages": limit}, retry=None, timeout=_PULL_S
                )
            except exceptions.DeadlineExceeded:
                return []
        return [_held(received.ack_id, received.message) for received in answer.received_messages]

    def acknowledge(self, subscription: str, ack_ids: Sequence[str]) -> None:
        name = self._subscription(subscription)
        with _asked(name):
            self._clients()[0].acknowledge(
                request={"subscription": name, "ack_ids": [*ack_ids]}, retry=self._repeats, timeout=_TRY_S
            )

    def release(self, subscription: str, ack_ids: Sequence[str]) -> None:
        name = self._subscription(subscription)
        request = {"subscription": name, "ack_ids": [*ack_ids], "ack_deadline_seconds": 0}
        with _asked(name):
            self._clients()[0].modify_ack_deadline(request=request, retry=self._repeats, timeout=_TRY_S)

    def has_topic(self, topic: str) -> bool:
        name = f"projects/{self._project}/topics/{topic}"
        with _asked(name):
            try:
                self._clients()[1].get_topic(request={"topic": name}, retry=self._repeats, timeout=_TRY_S)
            except exceptions.NotFound:
                return False
        return True

    def close(self) -> None:
        """Close the connections, if they were made."""
        with self._lock:
            for client in self._made or ():
                client.transport.close()  # type: ignore[no-untyped-call]
            self._made = None

    def _clients(self) -> tuple[SubscriberClient, PublisherClient]:
        from google.pubsub_v1 import PublisherClient, SubscriberClient  # noqa: PLC0415 - most commands read nothing

        with self._lock:
            if self._made is None:
                self._made = SubscriberClient(), PublisherClient()
            return self._made

    def _subscription(self, subscription: str) -> str:
        return f"projects/{self._project}/subscriptions/{subscription}"


@contextmanager
def _asked(name: str) -> Iterator[None]:
    try:
        yield
    except _REFUSED as error:
        raise Rejected.because(
            name, f"Pub/Sub refuses: {error}", "see that it exists and that you may use it"
        ) from error
    except (exceptions.GoogleAPIError, GoogleAuthError) as error:
        raise Retryable(f"{name}: Pub/Sub does not answer now: {error}") from error


def _held(ack_id: str, message: PubsubMessage) -> Held:
    return Held(
        ack_id=ack_id,
        message_id=message.message_id,
        body=message.data,
        attributes=dict(message.attributes),
        published_at=message.publish_time,
    )

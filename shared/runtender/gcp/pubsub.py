"""Publishing to Pub/Sub.

The generated client publishes one message per call and waits for its id. The batching client on top of it works in
threads behind the caller's back, which a function whose processor is taken away between events cannot afford.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.auth.exceptions import GoogleAuthError

from runtender.errors import Rejected, Retryable

if TYPE_CHECKING:
    from google.pubsub_v1 import PublisherClient

METHODS = ("pubsub.projects.topics.publish",)
"""Every API method that is called here: what the plane needs permission for."""

_TRY_S = 10.0
# Repeating may publish twice; every reader of a topic expects that anyway.
_REPEATS = Retry(
    predicate=if_exception_type(
        exceptions.Aborted,
        exceptions.DeadlineExceeded,
        exceptions.InternalServerError,
        exceptions.ResourceExhausted,
        exceptions.ServiceUnavailable,
    ),
    initial=0.2,
    maximum=5.0,
    timeout=30.0,
)


class PubSubTopics:
    """The Topics port. Honours PUBSUB_EMULATOR_HOST, as the client does."""

    def __init__(self, project: str, client: PublisherClient | None = None) -> None:
        """Publish to topics of `project`, with `client` if one is given; a topic may also be given by its full name."""
        self._project = project
        self._lock = threading.Lock()
        self._made = client

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str]) -> str:
        name = topic if topic.startswith("projects/") else f"projects/{self._project}/topics/{topic}"
        message = {"data": body, "attributes": dict(attributes)}
        try:
            answer = self._client().publish(
                request={"topic": name, "messages": [message]}, retry=_REPEATS, timeout=_TRY_S
            )
        except exceptions.InvalidArgument as error:
            raise Rejected.because(name, f"Pub/Sub does not take the message: {error}") from error
        except (exceptions.GoogleAPIError, GoogleAuthError) as error:
            raise Retryable(f"{name}: the message was not taken: {error}") from error
        return str(answer.message_ids[0])

    def close(self) -> None:
        """Close the connection, if one was made."""
        with self._lock:
            if self._made is not None:
                self._made.transport.close()  # type: ignore[no-untyped-call]
                self._made = None

    def _client(self) -> PublisherClient:
        from google.pubsub_v1 import PublisherClient  # noqa: PLC0415 - most events publish nothing; 100 ms

        with self._lock:
            if self._made is None:
                self._made = PublisherClient()
            return self._made

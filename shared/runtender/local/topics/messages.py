"""Messages, subscriptions and deliveries, and the JSON that carries them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """A published message. Ids are unique and grow with time, also over restarts."""

    id: str
    topic: str
    body: bytes
    attributes: Mapping[str, str] = field(default_factory=dict)
    published_at: datetime

    def resource(self) -> dict[str, Any]:
        """Return the message as Pub/Sub's REST API and push requests show it, with both spellings of a key."""
        published_at = self.published_at.astimezone(UTC).isoformat(timespec="microseconds")
        published_at = published_at.replace("+00:00", "Z")
        return {
            "data": base64.b64encode(self.body).decode(),
            "attributes": dict(self.attributes),
            "messageId": self.id,
            "message_id": self.id,
            "publishTime": published_at,
            "publish_time": published_at,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Subscription:
    """Where a topic's messages go, and how hard it is tried.

    Without an `endpoint` messages wait to be pulled. Without a `dead_letter_topic` they are tried until
    `retention` has passed since they were published.
    """

    name: str
    topic: str
    endpoint: str | None = None
    ack_deadline: timedelta = timedelta(seconds=600)
    min_backoff: timedelta = timedelta(seconds=10)
    max_backoff: timedelta = timedelta(seconds=600)
    retention: timedelta = timedelta(days=7)
    dead_letter_topic: str | None = None
    max_attempts: int = 10

    def scaled(self, scale: float) -> Subscription:
        """Return the same subscription in a world that runs `scale` times faster."""
        return replace(
            self,
            ack_deadline=self.ack_deadline / scale,
            min_backoff=self.min_backoff / scale,
            max_backoff=self.max_backoff / scale,
            retention=self.retention / scale,
        )

    def backoff(self, attempts: int) -> timedelta:
        """Return how long to wait after so many failed attempts: doubling between the two bounds."""
        # The exponent is bounded: beyond it the upper bound rules anyway, and a float would overflow.
        return min(self.max_backoff, self.min_backoff * 2.0 ** min(attempts - 1, 30))


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """One message on its way to one subscription. `ack_id` names this very attempt; attempts count from 1."""

    ack_id: str
    subscription: Subscription
    message: Message
    attempt: int


def push_body(delivery: Delivery, project: str) -> dict[str, Any]:
    """Return the body of the push request that carries a delivery."""
    body: dict[str, Any] = {
        "message": delivery.message.resource(),
        "subscription": f"projects/{project}/subscriptions/{delivery.subscription.name}",
    }
    # Pub/Sub counts attempts aloud only where there is a limit to them.
    if delivery.subscription.dead_letter_topic is not None:
        body["deliveryAttempt"] = delivery.attempt
    return body

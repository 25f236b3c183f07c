"""The plane's topics and subscriptions on Google's Pub/Sub emulator, made with the official clients, as a deployment has them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import grpc  # type: ignore[import-untyped]
from google.api_core.exceptions import NotFound
from google.pubsub_v1 import PublisherClient, SubscriberClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from runtender.local.topics import Subscription

# Pub/Sub's own bounds, in real seconds: they do not know that the plane's time runs faster.
_SHORTEST_ACK, _LONGEST_ACK = timedelta(seconds=10), timedelta(seconds=600)
_SHORTEST_BACKOFF, _LONGEST_BACKOFF = timedelta(seconds=1), timedelta(seconds=600)
_SHORTEST_RETENTION, _LONGEST_RETENTION = timedelta(minutes=10), timedelta(days=31)


class EmulatedPubSub:
    """The plane's part of an emulator at `host`, in `project`. `publisher` is connected to it."""

    def __init__(self, host: str, project: str) -> None:
        # A proxy of the environment has no business on the loopback address.
        self._channel = grpc.insecure_channel(host, options=[("grpc.enable_http_proxy", 0)])
        self.publisher = PublisherClient(transport=PublisherGrpcTransport(channel=self._channel))
        self._subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=self._channel))
        self._project = f"projects/{project}"

    def make(self, topics: Iterable[str], subscriptions: Iterable[Subscription]) -> None:
        """Make topics and subscriptions; what there is under their names goes first, with its messages."""
        topics, subscriptions = tuple(topics), tuple(subscriptions)
        self.remove(topics, subscriptions)
        for topic in topics:
            self.publisher.create_topic(name=self._topic(topic))
        for subscription in subscriptions:
            self._subscriber.create_subscription(request=self._request(subscription))

    def remove(self, topics: Iterable[str], subscriptions: Iterable[Subscription]) -> None:
        """Remove topics and subscriptions; some of them need not be there."""
        for subscription in subscriptions:
            with suppress(NotFound):
                self._subscriber.delete_subscription(subscription=self._subscription(subscription.name))
        for topic in topics:
            with suppress(NotFound):
                self.publisher.delete_topic(topic=self._topic(topic))

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def _request(self, subscription: Subscription) -> dict[str, Any]:
        request: dict[str, Any] = {
            "name": self._subscription(subscription.name),
            "topic": self._topic(subscription.topic),
            "ack_deadline_seconds": round(
                _within(_SHORTEST_ACK, subscription.ack_deadline, _LONGEST_ACK).total_seconds()
            ),
            "message_retention_duration": _within(
                _SHORTEST_RETENTION, subscription.retention, _LONGEST_RETENTION
            ),
            "retry_policy": {
                "minimum_backoff": _within(_SHORTEST_BACKOFF, subscription.min_backoff, _LONGEST_BACKOFF),
                "maximum_backoff": _within(_SHORTEST_BACKOFF, subscription.max_backoff, _LONGEST_BACKOFF),
            },
        }
        if subscription.endpoint is not None:
            request["push_config"] = {"push_endpoint": subscription.endpoint}
        if subscription.dead_letter_topic is not None:
            request["dead_letter_policy"] = {
                "dead_letter_topic": self._topic(subscription.dead_letter_topic),
                "max_delivery_attempts": subscription.max_attempts,
            }
        return request

    def _topic(self, name: str) -> str:
        return f"{self._project}/topics/{name}"

    def _subscription(self, name: str) -> str:
        return f"{self._project}/subscriptions/{name}"


def _within(least: timedelta, span: timedelta, most: timedelta) -> timedelta:
    return min(max(least, span), most)

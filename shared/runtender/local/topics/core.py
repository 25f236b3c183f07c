"""Pub/Sub as a core: a state machine that is told the moment and decides what is due, without transport or clock.

Whoever drives it asks for the deliveries that are `due`, picks any of them, `begin`s it, carries it out, and
says `ack` or `nack`. The local cloud's pusher takes them in order and in parallel; a simulation takes them in
any order it likes. Delivery is at least once: an attempt that is not answered within the acknowledgement
deadline counts as failed and comes again, while its first copy may still be running.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from runtender.local.topics.messages import Delivery, Message, Subscription

MAX_MESSAGE_BYTES = 10_000_000
MAX_ATTRIBUTES = 100
MAX_ATTRIBUTE_VALUE_BYTES = 1024

Arrivals = Callable[[Subscription, Message], Sequence[timedelta]]
"""How a message reaches a subscription: the delay of each copy. None is a loss, two a double, a long one late."""


def once(_subscription: Subscription, _message: Message) -> Sequence[timedelta]:
    """Let each message arrive at once and one time."""
    return (timedelta(0),)


class UnknownName(LookupError):
    """There is no topic or subscription of that name."""


class Unpublishable(ValueError):
    """The message is larger than Pub/Sub takes, or empty."""


@dataclass(kw_only=True, slots=True)
class _Copy:
    """One message in one subscription. While `leased`, `due_at` is the end of the acknowledgement deadline."""

    serial: int
    subscription: Subscription
    message: Message
    due_at: datetime
    attempts: int = 0
    leased: bool = False

    @property
    def ack_id(self) -> str:
        """Names the attempt, so that an answer that comes too late finds nothing."""
        return f"{self.serial}:{self.attempts}"

    @property
    def expires_at(self) -> datetime:
        return self.message.published_at + self.subscription.retention

    def delivery(self) -> Delivery:
        return Delivery(
            ack_id=self.ack_id,
            subscription=self.subscription,
            message=self.message,
            attempt=self.attempts if self.leased else self.attempts + 1,
        )


class TopicsCore:
    """The service's whole state. Not thread-safe: one caller at a time."""

    def __init__(
        self,
        *,
        project: str,
        topics: Iterable[str],
        subscriptions: Iterable[Subscription],
        arrivals: Arrivals = once,
    ) -> None:
        self.project = project
        self._topics = frozenset(topics)
        self._subscriptions = {subscription.name: subscription for subscription in subscriptions}
        self._arrivals = arrivals
        self._copies: dict[int, _Copy] = {}
        self._serial = 0
        self._last_id = 0
        self._published: Counter[str] = Counter()
        self._outcomes: dict[str, Counter[str]] = {name: Counter() for name in self._subscriptions}
        for subscription in self._subscriptions.values():
            for topic in filter(None, (subscription.topic, subscription.dead_letter_topic)):
                self.check_topic(topic)

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str], now: datetime) -> str:
        """Take a message, hand a copy to each subscription of the topic, and return the message's id.

        Raises UnknownName, or Unpublishable when the message is over Pub/Sub's limits.
        """
        self.check_topic(topic)
        check_message(body, attributes)
        return self._accept(topic, body, attributes, now)

    def due(self, now: datetime, subscription: str | None = None) -> list[Delivery]:
        """Return what could be delivered now, longest due first, of one subscription or of all."""
        if subscription is not None:
            self._check_subscription(subscription)
        self._let_time_pass(now)
        ready = [
            copy
            for copy in self._copies.values()
            if not copy.leased and copy.due_at <= now and subscription in {None, copy.subscription.name}
        ]
        return [copy.delivery() for copy in sorted(ready, key=lambda copy: (copy.due_at, copy.serial))]

    def begin(self, delivery: Delivery, now: datetime) -> Delivery:
        """Start the attempt that `due` offered; it is this caller's until the acknowledgement deadline.

        Return the delivery under the id that `ack` and `nack` take. Raises UnknownName when it is no longer
        on offer.
        """
        copy = self._find(delivery.ack_id)
        if copy is None or copy.leased:
            raise UnknownName(delivery.ack_id)
        copy.attempts += 1
        copy.leased = True
        copy.due_at = now + copy.subscription.ack_deadline
        return copy.delivery()

    def ack(self, ack_id: str) -> bool:
        """Settle an attempt as delivered; False when it is settled already or its deadline has passed."""
        copy = self._leased(ack_id)
        if copy is None:
            return False
        del self._copies[copy.serial]
        self._outcomes[copy.subscription.name]["delivered"] += 1
        return True

    def nack(self, ack_id: str, now: datetime) -> bool:
        """Settle an attempt as failed: it comes again after a back-off, or becomes a dead letter."""
        copy = self._leased(ack_id)
        if copy is None:
            return False
        self._fail(copy, now)
        return True

    def extend(self, ack_id: str, until: datetime) -> bool:
        """Give an attempt time until then; False when it is settled already or its deadline has passed."""
        copy = self._leased(ack_id)
        if copy is None:
            return False
        copy.due_at = until
        return True

    def pull(self, subscription: str, limit: int, now: datetime) -> list[Delivery]:
        """Begin up to `limit` deliveries of a subscription that waits to be asked."""
        return [self.begin(delivery, now) for delivery in self.due(now, subscription)[:limit]]

    def next_change(self) -> datetime | None:
        """Return when something becomes due next, or was due already; None when nothing waits."""
        return min((copy.due_at for copy in self._copies.values() if self._pushes(copy)), default=None)

    def waiting(self, subscription: str) -> tuple[Message, ...]:
        """Return the messages of a subscription that are not acknowledged, oldest first, without taking them."""
        self._check_subscription(subscription)
        return tuple(copy.message for copy in self._copies.values() if copy.subscription.name == subscription)

    def counts(self) -> dict[str, Any]:
        """Return messages `published` by topic, and what became of them by subscription.

        `delivered` and `failed` count attempts; `dead_lettered` and `expired` count messages.
        """
        return {
            "topics": {topic: self._published[topic] for topic in sorted(self._topics)},
            "subscriptions": {
                name: {word: outcomes[word] for word in ("delivered", "failed", "dead_lettered", "expired")}
                for name, outcomes in sorted(self._outcomes.items())
            },
        }

    def _accept(self, topic: str, body: bytes, attributes: Mapping[str, str], now: datetime) -> str:
        self._last_id = max(self._last_id + 1, int(now.timestamp() * 1_000_000))
        message = Message(
            id=str(self._last_id), topic=topic, body=body, attributes=dict(attributes), published_at=now
        )
        self._published[topic] += 1
        for subscription in self._subscriptions.values():
            if subscription.topic == topic:
                for delay in self._arrivals(subscription, message):
                    self._serial += 1
                    self._copies[self._serial] = _Copy(
                        serial=self._serial, subscription=subscription, message=message, due_at=now + delay
                    )
        return message.id

    @staticmethod
    def _pushes(copy: _Copy) -> bool:
        return copy.subscription.endpoint is not None

    def _let_time_pass(self, now: datetime) -> None:
        """Fail what nobody answered in time and drop what has been kept long enough."""
        for copy in list(self._copies.values()):
            if copy.expires_at <= now:
                del self._copies[copy.serial]
                self._outcomes[copy.subscription.name]["expired"] += 1
            elif copy.leased and copy.due_at <= now:
                self._fail(copy, copy.due_at)

    def _fail(self, copy: _Copy, now: datetime) -> None:
        subscription = copy.subscription
        self._outcomes[subscription.name]["failed"] += 1
        if subscription.dead_letter_topic is not None and copy.attempts >= subscription.max_attempts:
            del self._copies[copy.serial]
            self._outcomes[subscription.name]["dead_lettered"] += 1
            attributes = {**copy.message.attributes, **self._dead_letter_attributes(copy)}
            # Past the size check: the attributes that tell of its fate must not lose a message of full size.
            self._accept(subscription.dead_letter_topic, copy.message.body, attributes, now)
            return
        copy.leased = False
        copy.due_at = now + subscription.backoff(copy.attempts)

    def _dead_letter_attributes(self, copy: _Copy) -> dict[str, str]:
        published_at = copy.message.published_at.astimezone(UTC).isoformat(timespec="milliseconds")
        return {
            "CloudPubSubDeadLetterSourceDeliveryCount": str(copy.attempts),
            "CloudPubSubDeadLetterSourceSubscription": copy.subscription.name,
            "CloudPubSubDeadLetterSourceSubscriptionProject": self.project,
            "CloudPubSubDeadLetterSourceTopicPublishTime": published_at,
        }

    def _find(self, ack_id: str) -> _Copy | None:
        serial, _, _ = ack_id.partition(":")
        copy = self._copies.get(int(serial)) if serial.isdigit() else None
        return copy if copy is not None and copy.ack_id == ack_id else None

    def _leased(self, ack_id: str) -> _Copy | None:
        copy = self._find(ack_id)
        return copy if copy is not None and copy.leased else None

    def check_topic(self, name: str) -> None:
        """Raise UnknownName where there is no such topic."""
        if name not in self._topics:
            raise UnknownName(name)

    def _check_subscription(self, name: str) -> None:
        if name not in self._subscriptions:
            raise UnknownName(name)


def check_message(body: bytes, attributes: Mapping[str, str]) -> None:
    """Raise Unpublishable when a message is over Pub/Sub's limits, or empty."""
    size = len(body) + sum(len(key.encode()) + len(value.encode()) for key, value in attributes.items())
    if size > MAX_MESSAGE_BYTES:
        raise Unpublishable(f"The message is {size} bytes; at most {MAX_MESSAGE_BYTES} are taken.")
    if not body and not attributes:
        raise Unpublishable("Some resource contains no data and no attributes.")
    if len(attributes) > MAX_ATTRIBUTES:
        raise Unpublishable(f"At most {MAX_ATTRIBUTES} attributes are taken, not {len(attributes)}.")
    for key, value in attributes.items():
        if len(value.encode()) > MAX_ATTRIBUTE_VALUE_BYTES:
            raise Unpublishable(f"Attribute {key!r} is over {MAX_ATTRIBUTE_VALUE_BYTES} bytes.")

"""A scenario's rules about events: which of them are lost, doubled or late, as the simulated Pub/Sub consults them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from runtender.ids import parse_marker_object
from runtender.local.scenario.rules import EventKind, EventRule
from runtender.local.scenario.turns import Turns
from runtender.local.topics import Message, Subscription, once
from runtender.settings import Settings


class EventArrivals:
    """Says in which copies, and how late, a message reaches a function. What waits to be pulled always does."""

    def __init__(
        self,
        rules: Sequence[EventRule],
        *,
        settings: Settings,
        elapsed: Callable[[], timedelta],
        scale: float,
    ) -> None:
        self._rules = tuple(rules)
        self._settings = settings
        self._turns = Turns([rule.turn for rule in rules], elapsed)
        self._scale = scale

    def __call__(self, subscription: Subscription, message: Message) -> Sequence[timedelta]:
        kind = self._kind(message) if subscription.endpoint is not None else None
        for index, rule in enumerate(self._rules):
            if rule.kind is kind and self._turns.take(index):
                return tuple(delay / self._scale for delay in rule.arrives)
        return once(subscription, message)

    def _kind(self, message: Message) -> EventKind | None:
        if message.topic == self._settings.submit_topic:
            return EventKind.SUBMIT
        if message.topic == self._settings.tick_topic:
            return EventKind.TICK
        marker = parse_marker_object(message.attributes.get("objectId", ""))
        return None if marker is None else EventKind(marker.stage)

"""Dead letters: messages that the plane gave up on, looked at, sent again or thrown away by a person.

There are two kinds. One the intake has rejected for what is in it; another tried to reach a function too often, and
Pub/Sub itself put it aside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from runtender.client.errors import ClientError
from runtender.client.world import World
from runtender.ports import Held

# What waits here waits for a person; more than this is one fault many times over.
_MOST = 500
_AT_ONCE = 100
_BY_PUBSUB = "CloudPubSubDeadLetter"
_BY_INTAKE = frozenset({"request_id", "message_id", "reason"})


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    """A message with what is known of its fate. `topic` is where it came from, None where that is not of this plane."""

    held: Held
    topic: str | None
    reason: str
    request_id: str | None
    rejected: bool

    @property
    def id(self) -> str:
        """The message's id in the dead-letter topic."""
        return self.held.message_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Redriven:
    """A dead letter that was sent again: to which topic, as which message, and as which request if it is known."""

    id: str
    topic: str
    message_id: str
    request_id: str | None


class DeadLetterBox(AbstractContextManager["DeadLetterBox"]):
    """All dead letters that wait, ours for the time of a `with` statement; what is not settled by then goes back."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._subscription = f"{world.settings.dead_letter_topic}-pull"
        self._held: dict[str, DeadLetter] = {}

    def __enter__(self) -> DeadLetterBox:
        while len(self._held) < _MOST:
            pulled = self._world.subscriptions.pull(self._subscription, _AT_ONCE)
            if not pulled:
                break
            # One that comes twice was not answered in time; its newest delivery counts.
            self._held.update((held.message_id, self._read(held)) for held in pulled)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held:
            left = [letter.held.ack_id for letter in self._held.values()]
            self._world.subscriptions.release(self._subscription, left)

    @property
    def letters(self) -> tuple[DeadLetter, ...]:
        """What is in the box, oldest first."""
        return tuple(sorted(self._held.values(), key=lambda letter: letter.held.published_at))

    def find(self, ids: Iterable[str]) -> list[DeadLetter]:
        """Return the letters of these ids; raises `ClientError` for one that is not in the box."""
        wanted = tuple(dict.fromkeys(ids))
        missing = [each for each in wanted if each not in self._held]
        if missing:
            remedy = "'runtender dead-letters list' shows what waits"
            raise ClientError(f"there is no dead letter {', '.join(missing)}; {remedy}")
        return [self._held[each] for each in wanted]

    def redrive(self, letter: DeadLetter) -> Redriven:
        """Send a letter to the topic it came from, and remove it here; raises `ClientError` where that is unknown."""
        if letter.topic is None:
            raise ClientError(
                f"dead letter {letter.id} is not from a topic of this plane; publish or discard it by hand"
            )
        body, request_id = _again(letter)
        attributes = {**_own_attributes(letter.held.attributes), "redriven_from": letter.id}
        # Before it is removed here: sent twice is told apart by its request id, lost is lost.
        message_id = self._world.topics.publish(letter.topic, body, attributes)
        self.discard([letter])
        return Redriven(id=letter.id, topic=letter.topic, message_id=message_id, request_id=request_id)

    def discard(self, letters: Sequence[DeadLetter]) -> None:
        """Remove letters for good."""
        self._world.subscriptions.acknowledge(self._subscription, [letter.held.ack_id for letter in letters])
        for letter in letters:
            del self._held[letter.id]

    def _read(self, held: Held) -> DeadLetter:
        attributes = held.attributes
        source = attributes.get(f"{_BY_PUBSUB}SourceSubscription")
        request_id = attributes.get("request_id") or _object(held.body).get("request_id")
        tries = attributes.get(f"{_BY_PUBSUB}SourceDeliveryCount", "?")
        return DeadLetter(
            held=held,
            topic=self._world.settings.submit_topic if source is None else self._topic_of(source),
            reason=attributes.get("reason", "")
            if source is None
            else f"not taken in {tries} tries by {source}",
            request_id=request_id if isinstance(request_id, str) else None,
            rejected=source is None,
        )

    def _topic_of(self, subscription: str) -> str | None:
        """Return the topic of a subscription, by whose name a subscription's begins."""
        settings = self._world.settings
        topics = (settings.submit_topic, settings.marker_topic, settings.tick_topic)
        return max((topic for topic in topics if subscription.startswith(topic)), key=len, default=None)


def _again(letter: DeadLetter) -> tuple[bytes, str | None]:
    """Return what is sent in place of a letter, and its request id if it has one.

    A rejected request has its answer for good, so it needs a new id; made of the letter's, it is the same however often
    the letter is sent. A message that no function could take in is its own self still.
    """
    message = _object(letter.held.body)
    if not letter.rejected or not message:
        return letter.held.body, letter.request_id
    request_id = f"redrive-{letter.id}"
    return json.dumps({**message, "request_id": request_id}, separators=(",", ":")).encode(), request_id


def _own_attributes(attributes: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in attributes.items()
        if not name.startswith(_BY_PUBSUB) and name not in _BY_INTAKE
    }


def _object(body: bytes) -> Mapping[str, Any]:
    """Return a body as the JSON object that it is; empty where it is none."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}

"""CloudEvents as functions-framework hands them over: Pub/Sub messages and Cloud Storage finalize events.

Pub/Sub's classic push body and its CloudEvent look alike by then. A Storage event arrives either as a notification
through Pub/Sub (attributes `bucketId`, `objectId`) or as the Storage CloudEvent itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from runtender.errors import RuntenderError

_FINALIZE = "OBJECT_FINALIZE"
_STORAGE_SUFFIX = "storage.object.v1.finalized"


class MalformedEvent(RuntenderError):
    """The event is not of the kind this entry point serves; it will not become one by coming again."""


class Event(Protocol):
    """What is used of `cloudevents.http.CloudEvent`."""

    data: Any

    def __getitem__(self, key: str) -> Any: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """A Pub/Sub message."""

    body: bytes
    attributes: Mapping[str, str]
    message_id: str
    published_at: datetime


def read_message(event: Event, now: datetime) -> Message:
    """Read a Pub/Sub message. What is missing is taken from the event itself, at last from `now`: nothing is lost."""
    message = _mapping(_mapping(event.data).get("message"))
    body = _decoded(message.get("data"))
    named = message.get("messageId") or message.get("message_id") or _attribute(event, "id")
    return Message(
        body=body,
        attributes=_attributes(message),
        # Two messages without an id must not get each other's answers.
        message_id=str(named or f"sha256-{hashlib.sha256(body).hexdigest()[:32]}"),
        published_at=_moment(message.get("publishTime") or message.get("publish_time"), now),
    )


def read_object(event: Event) -> str:
    """Return the name of the object that was written; `MalformedEvent` when the event names none."""
    data = _mapping(event.data)
    if str(_attribute(event, "type")).endswith(_STORAGE_SUFFIX):
        name = data.get("name")
    else:
        attributes = _attributes(_mapping(data.get("message")))
        if attributes.get("eventType", _FINALIZE) != _FINALIZE:
            raise MalformedEvent(f"eventType {attributes['eventType']!r} is not {_FINALIZE}")
        name = attributes.get("objectId")
    if not isinstance(name, str) or not name:
        raise MalformedEvent("the event names no object")
    return name


def _attributes(message: Mapping[str, Any]) -> Mapping[str, str]:
    return {str(key): str(value) for key, value in _mapping(message.get("attributes")).items()}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _attribute(event: Event, name: str) -> Any:
    try:
        return event[name]
    except (KeyError, AttributeError):
        return ""


def _decoded(data: Any) -> bytes:
    """The message's bytes. Something that is not base64 is passed on as it is, to be rejected with its own words."""
    if not isinstance(data, str):
        return b""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return data.encode()


def _moment(text: Any, now: datetime) -> datetime:
    if isinstance(text, str):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return now
        return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    return now

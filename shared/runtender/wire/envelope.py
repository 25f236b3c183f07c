"""The HTTP request that brings an event: classic Pub/Sub push, binary or structured CloudEvent.

functions-framework reads these as well, but refuses a push whose message has no data, which Pub/Sub allows: a tick made of
attributes alone would come back until it is dead, and a submit without a body would never be told what is wrong with it.
Nothing is refused here. What carries no event becomes one without data, which each entry point answers in its own way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BINARY = "ce-"
_MOST_ID = 200
_STRUCTURED = "application/cloudevents+json"
# W3C's header, and the one that Google's front ends add beside it.
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*")
_CLOUD_TRACE = re.compile(r"([0-9a-f]{32})(/.*)?")


class Delivery:
    """An event as it came: `data`, and by key the attributes of a CloudEvent (a classic push has none).

    `event_id` is the CloudEvent's or the Pub/Sub message's, empty where there is neither; `trace_id` is that of the request,
    32 hex digits, else the event's id: what belongs together in the logs has one of it.
    """

    __slots__ = ("_attributes", "data", "event_id", "trace_id")

    def __init__(self, attributes: Mapping[str, Any], data: Any, trace_id: str = "") -> None:
        self._attributes = attributes
        self.data = data
        self.event_id = _event_id(attributes, data)
        self.trace_id = trace_id or self.event_id

    def __getitem__(self, key: str) -> Any:
        return self._attributes[key]


def read_delivery(headers: Mapping[str, str], body: bytes) -> Delivery:
    """Read a request's event; its data is None where the body is not JSON."""
    named = {name.lower(): value for name, value in headers.items()}
    attributes: Mapping[str, Any] = {
        name.removeprefix(_BINARY): value for name, value in named.items() if name.startswith(_BINARY)
    }
    data = _parsed(body)
    if not attributes and named.get("content-type", "").startswith(_STRUCTURED) and isinstance(data, dict):
        attributes, data = data, data.get("data")
    return Delivery(attributes, data, _trace_id(named, attributes))


def _event_id(attributes: Mapping[str, Any], data: Any) -> str:
    message = data.get("message") if isinstance(data, dict) else None
    found = message.get("messageId") or message.get("message_id") if isinstance(message, dict) else None
    return str(attributes.get("id") or found or "")[:_MOST_ID]


def _trace_id(headers: Mapping[str, str], attributes: Mapping[str, Any]) -> str:
    for pattern, text in (
        (_TRACEPARENT, headers.get("traceparent", "")),
        (_CLOUD_TRACE, headers.get("x-cloud-trace-context", "")),
        (_TRACEPARENT, str(attributes.get("traceparent", ""))),
    ):
        if match := pattern.fullmatch(text.strip().lower()):
            return match[1]
    return ""


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

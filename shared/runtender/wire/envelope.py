"""The HTTP request that brings an event: classic Pub/Sub push, binary or structured CloudEvent.

functions-framework reads these as well, but refuses a push whose message has no data, which Pub/Sub allows: a tick made of
attributes alone would come back until it is dead, and a submit without a body would never be told what is wrong with it.
Nothing is refused here. What carries no event becomes one without data, which each entry point answers in its own way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_BINARY = "ce-"
_STRUCTURED = "application/cloudevents+json"


class Delivery:
    """An event as it came: `data`, and by key the attributes of a CloudEvent (a classic push has none)."""

    __slots__ = ("_attributes", "data")

    def __init__(self, attributes: Mapping[str, Any], data: Any) -> None:
        self._attributes = attributes
        self.data = data

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
    return Delivery(attributes, data)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

"""What the two backends of a local cloud have in common: a place for documents, and a carrier of messages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from runtender.ports import Store, Topics


class BackendName(StrEnum):
    """EMBEDDED is our own, in Python; GOOGLE is Google's Firestore and Pub/Sub emulators. Values of SF_BACKEND."""

    EMBEDDED = "embedded"
    GOOGLE = "google"


class Backend(Protocol):
    """A running backend, with the plane's topics and its push subscriptions to the functions.

    `variables` point a client in another process at it; `addresses` are its services' URLs by name; `store` and `topics` are
    the ports for this process.
    """

    variables: Mapping[str, str]
    addresses: Mapping[str, str]
    store: Store
    topics: Topics

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str], now: datetime, /) -> object:
        """Publish what a simulated service has to say, without waiting for it to be taken. `now` is that service's time."""

    def delivered(self) -> Mapping[str, int]:
        """Return how many messages each push subscription has delivered, by its name."""

    def close(self) -> None:
        """Stop it. May be called twice."""

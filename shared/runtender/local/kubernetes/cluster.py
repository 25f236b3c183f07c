"""One simulated cluster as its controllers see it: its objects, its time, and the work that changes bring about.

A controller is told which object may want its care and looks at that object as it is now; what changed, or how often, does
not matter. Nothing here waits: what is to happen later is noted on the agenda.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID, uuid5

from runtender.local.compute.agenda import Agenda
from runtender.local.kubernetes.documents import Document, Key, stamp
from runtender.local.kubernetes.events import Event
from runtender.local.kubernetes.store import Store
from runtender.local.kubernetes.timings import Timings

Care = Callable[[Key], None]
"""What a controller does about one object."""

_UIDS = UUID("5b6c0d6a-5f43-5a86-9a0e-7a0c5b1f2d10")
# As Kubernetes has them: no vowels and nothing that looks like another character.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5
# Far above what the largest job needs; more means that two controllers undo each other's work.
_MOST_ROUNDS = 1_000_000


class Cluster:
    """The state that all parts of a cluster share. `now` is the moment being played; whoever drives the cluster sets it."""

    def __init__(self, *, name: str, minor: int, timings: Timings, born: datetime) -> None:
        self.name = name
        self.minor = minor
        self.timings = timings
        self.now = born
        self.store = Store()
        self._agenda = Agenda()
        self._work: dict[tuple[Care, Key], None] = {}
        self._events: list[Event] = []
        self._made = 0

    def run(self, now: datetime) -> None:
        """Let everything happen that is due at `now`, each thing at its own time."""
        self.settle()
        while (due := self._agenda.next_due()) is not None and due <= now:
            # A clock that was set back does not turn what is done.
            self.now = max(self.now, due)
            self._agenda.run(due)
            self.settle()
        self.now = max(self.now, now)

    def settle(self) -> None:
        """Let controllers work until none has anything to do at this moment."""
        for _ in range(_MOST_ROUNDS):
            if not self._work:
                return
            care, key = next(iter(self._work))
            del self._work[care, key]
            care(key)
        raise RuntimeError(f"cluster {self.name}: its controllers do not come to rest")

    def next_due(self) -> datetime | None:
        """Return when something will happen by itself; None when nothing will."""
        self.settle()
        return self._agenda.next_due()

    def wake(self, care: Care, key: Key) -> None:
        """Let a controller look at an object, soon and once."""
        self._work[care, key] = None

    def later(self, span: timedelta, action: Callable[[], None]) -> None:
        """Let something happen after a span."""
        self.at(self.now + span, action)

    def at(self, due: datetime, action: Callable[[], None]) -> None:
        """Let something happen at a time; soon, when that has passed."""
        self._agenda.at(max(due, self.now), lambda _due: action())

    def tell(self, event: Event) -> None:
        """Tell whoever runs the pods."""
        self._events.append(event)

    def drain(self) -> tuple[Event, ...]:
        """Hand out what was told since the last call."""
        events, self._events = tuple(self._events), []
        return events

    def complete(self, document: Document) -> Document:
        """Fill in what the server gives a new object: its UID and when it was made."""
        self._made += 1
        metadata = document["metadata"]
        metadata["uid"] = str(uuid5(_UIDS, f"{self.name}/{self._made}"))
        metadata["creationTimestamp"] = stamp(self.now)
        return document

    def suffix(self) -> str:
        """Return five characters that end a name which is the server's to choose."""
        self._made += 1
        digest = hashlib.sha256(f"{self.name}/{self._made}".encode()).digest()
        return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:_SUFFIX])

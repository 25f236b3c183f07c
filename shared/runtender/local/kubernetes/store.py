"""What a cluster knows: every object at its latest version, and the changes that led there, for whoever watches.

As in etcd one counter numbers all changes, whatever their kind. The changes of a while are remembered; who asks for
older ones is told that they have expired and lists again.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from runtender.local.kubernetes.documents import (
    Document,
    Key,
    copied,
    finalizers_of,
    is_ending,
    metadata_of,
    name_of,
    namespace_of,
    owners_of,
    uid_of,
)
from runtender.local.kubernetes.errors import expired
from runtender.local.kubernetes.resources import RESOURCES

# Of a run with thousands of pods this is some minutes; a watch that is further behind lists again.
_REMEMBERED = 20_000


class ChangeType(StrEnum):
    """What became of an object, in the words of a watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One change. `before` is None for a new object; of a deleted one `document` is what it was, at its last version."""

    type: ChangeType
    key: Key
    document: Document
    before: Document | None
    version: int


Listener = Callable[[Change], None]


class Store:
    """All objects of a cluster. Listeners hear of every change, in order, before the writer goes on."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self.version = 1
        self._objects: dict[str, dict[tuple[str, str], Document]] = {plural: {} for plural in RESOURCES}
        self._owned: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        self._keys: dict[str, Key] = {}
        self._changes: deque[Change] = deque(maxlen=remembered)
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """Let `listener` hear of every change from now on."""
        self._listeners.append(listener)

    def get(self, key: Key) -> Document | None:
        """Return an object as it is now."""
        return self._objects[key.resource].get((key.namespace, key.name))

    def find(self, uid: str) -> Document | None:
        """Return an object by its UID."""
        key = self._keys.get(uid)
        return None if key is None else self.get(key)

    def each(self, resource: str, namespace: str = "") -> Iterator[Document]:
        """Go through the objects of a resource in the order of their names, in one namespace or ("") in all."""
        objects = self._objects[resource]
        for where in sorted(objects):
            if namespace in {"", where[0]}:
                yield objects[where]

    def owned_by(self, uid: str, resource: str = "") -> tuple[Document, ...]:
        """Return the objects that name an owner, in the order in which they came to it."""
        keys = [key for key in self._owned.get(uid, ()) if resource in {"", key.resource}]
        return tuple(found for key in keys if (found := self.get(key)) is not None)

    def put(self, resource: str, document: Document) -> Document:
        """Keep a new object or a new version of one. Returns it with its version; an object without change keeps its own.

        The document becomes the store's. An ending object that nothing holds back any more is removed.
        """
        key = Key(resource=resource, namespace=namespace_of(document), name=name_of(document))
        before = self.get(key)
        if before == document:
            return before
        self._number(resource, before, document)
        if is_ending(document) and not finalizers_of(document) and not _stays(resource, document):
            return self._remove(key, document)
        self._objects[resource][key.namespace, key.name] = document
        self._index(key, before, document)
        kind = ChangeType.ADDED if before is None else ChangeType.MODIFIED
        self._tell(Change(type=kind, key=key, document=document, before=before, version=self.version))
        return document

    def edit(self, key: Key, change: Callable[[Document], None]) -> Document | None:
        """Change a copy of an object and keep it; None when the object is gone, before or by this."""
        before = self.get(key)
        if before is None:
            return None
        document = copied(before)
        change(document)
        self.put(key.resource, document)
        return self.get(key)

    def remove(self, key: Key) -> Document | None:
        """Let an object be gone at once, whatever would hold it back; returns it as it was."""
        before = self.get(key)
        if before is None:
            return None
        document = copied(before)
        self._number(key.resource, before, document)
        return self._remove(key, document)

    def changes_since(self, version: int) -> list[Change]:
        """Return the changes after a version; raises `StatusError` 410 when not all of them are remembered."""
        oldest = self._changes[0].version if self._changes else self.version + 1
        if version < oldest - 1 and len(self._changes) == self._changes.maxlen:
            raise expired(f"too old resource version: {version} ({oldest})")
        found: list[Change] = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    def _number(self, resource: str, before: Document | None, document: Document) -> None:
        self.version += 1
        metadata = metadata_of(document)
        metadata["resourceVersion"] = str(self.version)
        if RESOURCES[resource].keeps_generation:
            if before is None:
                metadata["generation"] = 1
            elif before.get("spec") != document.get("spec"):
                metadata["generation"] = before["metadata"]["generation"] + 1

    def _remove(self, key: Key, document: Document) -> Document:
        before = self._objects[key.resource].pop((key.namespace, key.name))
        self._index(key, before, None)
        self._tell(
            Change(type=ChangeType.DELETED, key=key, document=document, before=before, version=self.version)
        )
        return document

    def _index(self, key: Key, before: Document | None, after: Document | None) -> None:
        was = set() if before is None else {owner["uid"] for owner in owners_of(before)}
        owners = set() if after is None else {owner["uid"] for owner in owners_of(after)}
        for uid in was - owners:
            self._owned[uid].pop(key, None)
            if not self._owned[uid]:
                del self._owned[uid]
        for uid in owners - was:
            self._owned[uid][key] = None
        if before is not None:
            self._keys.pop(uid_of(before), None)
        if after is not None:
            self._keys[uid_of(after)] = key

    def _tell(self, change: Change) -> None:
        self._changes.append(change)
        for listener in self._listeners:
            listener(change)


def _stays(resource: str, document: Document) -> bool:
    """True for what is removed by whoever ends it, and not as soon as its finalizers are gone."""
    if resource == "namespaces":
        return bool(document.get("spec", {}).get("finalizers"))
    if resource != "pods":
        return False
    return bool(metadata_of(document).get("deletionGracePeriodSeconds", 0))

"""How objects end when they are deleted, and what becomes of the objects that they own.

Background: the object goes, what it owned follows. Foreground: what it owns goes first. Orphan: what it owns stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.deletion import begin_deletion
from runtender.local.kubernetes.documents import (
    Document,
    Key,
    drop_finalizer,
    finalizers_of,
    is_ending,
    name_of,
    namespace_of,
    owners_of,
    stamp,
    uid_of,
)
from runtender.local.kubernetes.resources import BY_KIND
from runtender.local.kubernetes.store import Change, ChangeType

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Propagation(StrEnum):
    """What becomes of the objects that a deleted one owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


_FINALIZERS = {Propagation.FOREGROUND: FOREGROUND, Propagation.ORPHAN: ORPHAN}


class Removal:
    """Deletes objects, and collects those whose owners are gone."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        cluster.store.subscribe(self._hear)

    def begin(self, key: Key, propagation: Propagation, grace: int | None = None) -> None:
        """Delete an object. A pod has `grace` seconds to end, None being its own."""
        if key.resource == "pods":
            begin_deletion(self._cluster, key, grace)
            return
        moment = stamp(self._cluster.now)
        finalizer = _FINALIZERS.get(propagation)

        def begin(document: Document) -> None:
            metadata = document["metadata"]
            metadata.setdefault("deletionTimestamp", moment)
            metadata.setdefault("deletionGracePeriodSeconds", 0)
            if finalizer is not None and finalizer not in finalizers_of(document):
                metadata["finalizers"] = [*finalizers_of(document), finalizer]
            if key.resource == "namespaces":
                document["status"] = {"phase": "Terminating"}

        self._cluster.store.edit(key, begin)

    def cascade(self, key: Key) -> None:
        """Delete an object after all that it owns."""
        self.begin(key, Propagation.FOREGROUND)

    def _hear(self, change: Change) -> None:
        document = change.document
        if change.type is ChangeType.DELETED:
            span = self._cluster.timings.collect
            if self._cluster.store.owned_by(uid_of(document)):
                self._cluster.later(span, lambda: self._collect_of(uid_of(document)))
        elif is_ending(document) and set(finalizers_of(document)) & {FOREGROUND, ORPHAN}:
            self._cluster.wake(self._finish, change.key)
        if change.type is ChangeType.ADDED and any(
            self._cluster.store.find(owner["uid"]) is None for owner in owners_of(document)
        ):
            self._cluster.later(self._cluster.timings.collect, lambda: self._collect(change.key))
        for owner in owners_of(document):
            found = self._cluster.store.find(owner["uid"])
            if found is not None and is_ending(found):
                self._cluster.wake(self._finish, _key_of(found))

    def _finish(self, key: Key) -> None:
        """Let an ending object go once its dependents allow it."""
        document = self._cluster.store.get(key)
        if document is None or not is_ending(document):
            return
        dependents = self._cluster.store.owned_by(uid_of(document))
        if ORPHAN in finalizers_of(document):
            for dependent in dependents:
                self._disown(dependent, {uid_of(document)})
            self._cluster.store.edit(key, lambda copy: drop_finalizer(copy, ORPHAN))
        elif FOREGROUND in finalizers_of(document):
            for dependent in dependents:
                if not is_ending(dependent):
                    self.begin(_key_of(dependent), Propagation.BACKGROUND)
            if not self._cluster.store.owned_by(uid_of(document)):
                self._cluster.store.edit(key, lambda copy: drop_finalizer(copy, FOREGROUND))

    def _collect_of(self, uid: str) -> None:
        for dependent in self._cluster.store.owned_by(uid):
            self._collect(_key_of(dependent))

    def _collect(self, key: Key) -> None:
        """Delete an object whose owners are all gone; let one that has others forget the gone."""
        document = self._cluster.store.get(key)
        if document is None or is_ending(document):
            return
        gone = {one["uid"] for one in owners_of(document) if self._cluster.store.find(one["uid"]) is None}
        if not gone:
            return
        if len(gone) == len(owners_of(document)):
            self.begin(key, Propagation.BACKGROUND)
        else:
            self._disown(document, gone)

    def _disown(self, document: Document, gone: Iterable[str]) -> None:
        def disown(copy: Document) -> None:
            kept = [owner for owner in owners_of(copy) if owner["uid"] not in gone]
            copy["metadata"]["ownerReferences"] = kept
            if not kept:
                del copy["metadata"]["ownerReferences"]

        self._cluster.store.edit(_key_of(document), disown)


def _key_of(document: Document) -> Key:
    resource = BY_KIND[document["kind"]].plural
    return Key(resource=resource, namespace=namespace_of(document), name=name_of(document))

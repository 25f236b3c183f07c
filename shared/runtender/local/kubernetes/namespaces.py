"""Namespaces: each new one gets its service account, and one that is deleted is emptied before it goes."""

from __future__ import annotations

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.documents import Document, Key, is_ending, name_of, namespace_of
from runtender.local.kubernetes.removal import Propagation, Removal
from runtender.local.kubernetes.resources import RESOURCES
from runtender.local.kubernetes.store import Change, ChangeType

FIRST = ("default", "kube-node-lease", "kube-public", "kube-system")
"""The namespaces that every cluster begins with."""

_ACCOUNT = "default"
_OWN = "kubernetes.io/metadata.name"


def blank_namespace(name: str) -> Document:
    """Return a namespace as the server completes it."""
    return {"apiVersion": "v1", "kind": "Namespace", **complete_namespace({"metadata": {"name": name}})}


def complete_namespace(document: Document) -> Document:
    """Fill in what every namespace has."""
    metadata = document["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), _OWN: metadata["name"]}
    document.setdefault("spec", {"finalizers": ["kubernetes"]})
    document.setdefault("status", {"phase": "Active"})
    return document


class NamespaceController:
    """Looks after the namespaces of a cluster."""

    def __init__(self, cluster: Cluster, removal: Removal) -> None:
        self._cluster = cluster
        self._removal = removal
        cluster.store.subscribe(self._hear)
        for name in FIRST:
            cluster.store.put("namespaces", cluster.complete(blank_namespace(name)))

    def _hear(self, change: Change) -> None:
        if change.key.resource == "namespaces":
            if change.type is ChangeType.ADDED:
                self._make_account(change.key.name)
            elif change.type is ChangeType.MODIFIED and is_ending(change.document):
                self._cluster.wake(self._empty, change.key)
        elif change.type is ChangeType.DELETED and change.key.namespace:
            key = Key(resource="namespaces", namespace="", name=change.key.namespace)
            self._cluster.wake(self._empty, key)

    def _make_account(self, namespace: str) -> None:
        account: Document = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": _ACCOUNT, "namespace": namespace},
        }
        self._cluster.store.put("serviceaccounts", self._cluster.complete(account))

    def _empty(self, key: Key) -> None:
        """Delete what is left in a namespace that ends; let it go when nothing is."""
        namespace = self._cluster.store.get(key)
        if namespace is None or not is_ending(namespace):
            return
        left = [
            (resource, document)
            for resource in RESOURCES
            if RESOURCES[resource].namespaced
            for document in self._cluster.store.each(resource, key.name)
        ]
        for resource, document in left:
            if not is_ending(document):
                where = Key(resource=resource, namespace=namespace_of(document), name=name_of(document))
                self._removal.begin(where, Propagation.BACKGROUND)
        if not left:
            self._cluster.store.edit(key, lambda copy: copy["spec"].update(finalizers=[]))

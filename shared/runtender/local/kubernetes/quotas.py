"""ResourceQuotas: how much a namespace may hold, what it holds, and the refusal of what would be too much."""

from __future__ import annotations

from decimal import Decimal

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.documents import Document, Key, metadata_of, name_of, namespace_of
from runtender.local.kubernetes.errors import forbidden
from runtender.local.kubernetes.pods import is_over
from runtender.local.kubernetes.quantities import amounts_of, limits_of, quantity, requests_of
from runtender.local.kubernetes.resources import RESOURCES
from runtender.local.kubernetes.store import Change

# Names that a quota may use without saying `requests.`.
_SHORT = {"cpu": "requests.cpu", "memory": "requests.memory"}
_NOTHING = Decimal(0)


class Quotas:
    """Holds namespaces to their quotas and keeps the status of those up to date."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        cluster.store.subscribe(self._hear)

    def check(self, resource: str, document: Document) -> None:
        """Raise `StatusError` 403 for an object that one of its namespace's quotas has no room for."""
        namespace = namespace_of(document)
        for quota in self._of(namespace):
            hard = amounts_of(quota["spec"].get("hard") or {})
            asked = {name: amount for name, amount in _uses(resource, document).items() if name in hard}
            used = self._used(namespace)
            over = {name for name, amount in asked.items() if used.get(name, _NOTHING) + amount > hard[name]}
            if over:
                listed = [
                    ",".join(f"{name}={quantity(table.get(name, _NOTHING))}" for name in sorted(over))
                    for table in (asked, used, hard)
                ]
                why = f"exceeded quota: {name_of(quota)}, requested: {listed[0]}, used: {listed[1]}, limited: {listed[2]}"
                metadata = metadata_of(document)
                name = str(metadata.get("name") or metadata.get("generateName", ""))
                raise forbidden(RESOURCES[resource], name, why)

    def _hear(self, change: Change) -> None:
        if change.key.resource == "resourcequotas":
            self._cluster.wake(self._show, change.key)
            return
        for quota in self._of(change.key.namespace):
            key = Key(resource="resourcequotas", namespace=change.key.namespace, name=name_of(quota))
            self._cluster.wake(self._show, key)

    def _of(self, namespace: str) -> list[Document]:
        return list(self._cluster.store.each("resourcequotas", namespace)) if namespace else []

    def _used(self, namespace: str) -> dict[str, Decimal]:
        used: dict[str, Decimal] = {}
        for resource in RESOURCES:
            if resource == "events":
                continue
            for document in self._cluster.store.each(resource, namespace):
                for name, amount in _uses(resource, document).items():
                    used[name] = used.get(name, _NOTHING) + amount
        return used

    def _show(self, key: Key) -> None:
        used = self._used(key.namespace)

        def show(quota: Document) -> None:
            hard = quota["spec"].get("hard") or {}
            listed = {name: quantity(used.get(name, _NOTHING)) for name in hard}
            quota["status"] = {"hard": dict(hard), "used": listed}

        self._cluster.store.edit(key, show)


def _uses(resource: str, document: Document) -> dict[str, Decimal]:
    """Return what an object counts for, under the names that quotas use."""
    counted = {f"count/{RESOURCES[resource].qualified}": Decimal(1)}
    if resource != "pods":
        return {**counted, resource: Decimal(1)}
    if is_over(document):
        return {}
    requests = {f"requests.{name}": amount for name, amount in requests_of(document["spec"]).items()}
    limits = {f"limits.{name}": amount for name, amount in limits_of(document["spec"]).items()}
    plain = {short: requests[full] for short, full in _SHORT.items() if full in requests}
    return {**counted, "pods": Decimal(1), **requests, **limits, **plain}

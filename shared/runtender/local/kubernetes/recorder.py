"""The cluster's event log: what happened to an object, told as Kubernetes Events beside it."""

from __future__ import annotations

from typing import Any

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.documents import Document, Key, name_of, namespace_of, stamp, uid_of

NORMAL = "Normal"
WARNING = "Warning"


class Recorder:
    """Writes events. The same thing happening again is counted on the event that there is already."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._written: dict[tuple[str, str, str], Key] = {}

    def normal(self, about: Document, source: str, reason: str, message: str) -> None:
        """Record something that was to be expected."""
        self._record(about, NORMAL, source, reason, message)

    def warning(self, about: Document, source: str, reason: str, message: str) -> None:
        """Record trouble."""
        self._record(about, WARNING, source, reason, message)

    def _record(self, about: Document, kind: str, source: str, reason: str, message: str) -> None:
        key = self._written.get((uid_of(about), reason, message))
        if key is None or self._cluster.store.edit(key, self._count) is None:
            self._write(about, kind, source, reason, message)

    def _count(self, event: Document) -> None:
        event["count"] += 1
        event["lastTimestamp"] = stamp(self._cluster.now)

    def _write(self, about: Document, kind: str, source: str, reason: str, message: str) -> None:
        cluster = self._cluster
        namespace = namespace_of(about) or "default"
        moment = stamp(cluster.now)
        name = f"{name_of(about)}.{cluster.suffix()}{cluster.suffix()}"
        event: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "kind": about["kind"],
                **({"namespace": namespace_of(about)} if namespace_of(about) else {}),
                "name": name_of(about),
                "uid": uid_of(about),
                "apiVersion": about["apiVersion"],
                "resourceVersion": about["metadata"].get("resourceVersion", ""),
            },
            "reason": reason,
            "message": message,
            "source": {"component": source},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "type": kind,
            "eventTime": None,
            "reportingComponent": source,
            "reportingInstance": "",
        }
        cluster.store.put("events", cluster.complete(event))
        key = Key(resource="events", namespace=namespace, name=name)
        self._written[uid_of(about), reason, message] = key
        cluster.later(cluster.timings.event_memory, lambda: self._forget(key, uid_of(about), reason, message))

    def _forget(self, key: Key, uid: str, reason: str, message: str) -> None:
        self._cluster.store.remove(key)
        self._written.pop((uid, reason, message), None)

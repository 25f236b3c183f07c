"""Where a pod runs: the first node with room that suits it. A pod for which there is none waits, and says why.

Where a pool may grow and one more of its nodes would do, one is ordered, as the cluster autoscaler does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.documents import (
    Document,
    Key,
    condition_of,
    holds,
    is_ending,
    labels_of,
    name_of,
    set_condition,
    uid_of,
)
from runtender.local.kubernetes.nodes import Nodes, taints_of
from runtender.local.kubernetes.occupancy import Occupancy
from runtender.local.kubernetes.pods import is_over, node_of, pod_key
from runtender.local.kubernetes.quantities import amounts_of, requests_of
from runtender.local.kubernetes.recorder import Recorder
from runtender.local.kubernetes.selectors import expressions
from runtender.local.kubernetes.store import Change, ChangeType

SOURCE = "default-scheduler"
AUTOSCALER = "cluster-autoscaler"

_NOTHING = Decimal(0)
_UNSUITED = "node(s) didn't match Pod's node affinity/selector"


class Scheduler:
    """Binds pods to nodes. Pods that wait are looked at again whenever room may have come up."""

    def __init__(self, cluster: Cluster, recorder: Recorder, nodes: Nodes) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._nodes = nodes
        self._waiting: dict[Key, None] = {}
        self._served: set[str] = set()
        self._occupancy = Occupancy()
        cluster.store.subscribe(self._hear)

    def retry(self) -> None:
        """Look at every pod that waits once more."""
        for key in self._waiting:
            self._cluster.wake(self._place, key)

    def _hear(self, change: Change) -> None:
        if change.key.resource == "nodes":
            self.retry()
        elif change.key.resource == "pods":
            gone = change.type is ChangeType.DELETED or is_over(change.document)
            self._occupancy.note(change.document, gone=gone)
            if change.type is ChangeType.ADDED and not node_of(change.document):
                self._cluster.later(
                    self._cluster.timings.schedule,
                    lambda: self._cluster.wake(self._place, change.key),
                )
            elif gone:
                self._waiting.pop(change.key, None)
                self._served.discard(uid_of(change.document))
                self.retry()

    def _place(self, key: Key) -> None:
        pod = self._cluster.store.get(key)
        if pod is None or node_of(pod) or is_ending(pod) or pod["spec"].get("schedulingGates"):
            self._waiting.pop(key, None)
            return
        refusals: Counter[str] = Counter()
        for node in self._cluster.store.each("nodes"):
            trouble = self._trouble(pod, node)
            if not trouble:
                self._bind(pod, node)
                return
            refusals.update(trouble)
        self._refuse(pod, refusals)

    def _bind(self, pod: Document, node: Document) -> None:
        key, where, now = pod_key(pod), name_of(node), self._cluster.now
        self._waiting.pop(key, None)
        self._served.discard(uid_of(pod))
        words = f"Successfully assigned {key.namespace}/{key.name} to {where}"
        self._recorder.normal(pod, SOURCE, "Scheduled", words)

        def bind(document: Document) -> None:
            document["spec"]["nodeName"] = where
            set_condition(document, "PodScheduled", True, now)

        self._cluster.store.edit(key, bind)

    def _refuse(self, pod: Document, refusals: Counter[str]) -> None:
        key, now = pod_key(pod), self._cluster.now
        self._waiting[key] = None
        total = sum(1 for _ in self._cluster.store.each("nodes"))
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(refusals.items()))
        words = (
            f"0/{total} nodes are available: {reasons}." if reasons else "no nodes available to schedule pods"
        )
        before = condition_of(pod, "PodScheduled")
        if before is None or before.get("message") != words:
            self._recorder.warning(pod, SOURCE, "FailedScheduling", words)

        def mark(document: Document) -> None:
            set_condition(document, "PodScheduled", False, now, reason="Unschedulable", message=words)

        self._cluster.store.edit(key, mark)
        self._order_node(pod)

    def _order_node(self, pod: Document) -> None:
        """Order a node for a pod that has none on its way."""
        if uid_of(pod) in self._served:
            return
        for pool in self._nodes.pools.values():
            suits = not self._trouble(pod, self._nodes.blank(pool, "new"), new=True)
            count = len(self._nodes.of_pool(pool)) + self._nodes.ordered(pool)
            if suits and self._nodes.grow(pool):
                self._served.add(uid_of(pod))
                words = f"pod triggered scale-up: [{{{pool.name} {count}->{count + 1} (max: {pool.limit})}}]"
                self._recorder.normal(pod, AUTOSCALER, "TriggeredScaleUp", words)
                return
        words = "pod didn't trigger scale-up: no pool can grow for it"
        self._recorder.normal(pod, AUTOSCALER, "NotTriggerScaleUp", words)

    def _trouble(self, pod: Document, node: Document, *, new: bool = False) -> list[str]:
        """Say what speaks against a pod on a node; nothing when it fits. A `new` node is ready and empty."""
        if not new and (node["spec"].get("unschedulable") or not holds(node, "Ready")):
            return ["node(s) were unschedulable"]
        if not _suits(pod["spec"], labels_of(node)):
            return [_UNSUITED]
        for taint in taints_of(node):
            if taint["effect"] != "PreferNoSchedule" and not _tolerates(pod["spec"], taint):
                return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
        used = {} if new else self._occupancy.of(name_of(node))
        room = amounts_of(node["status"]["allocatable"])
        return [
            "Too many pods" if name == "pods" else f"Insufficient {name}"
            for name, amount in requests_of(pod["spec"]).items()
            if amount > room.get(name, _NOTHING) - used.get(name, _NOTHING)
        ]


def _suits(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(
        all(one.met_by(labels) for one in expressions(term.get("matchExpressions") or ()))
        for term in required["nodeSelectorTerms"]
    )


def _tolerates(spec: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    return any(_covers(toleration, taint) for toleration in spec.get("tolerations") or ())


def _covers(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in {None, "", taint["effect"]}:
        return False
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")

"""What takes pods away that did nothing wrong: evictions, preemptions, and nodes that are lost.

Each leaves the condition `DisruptionTarget` on the pod, by which a Job's failure policy tells it from a failure of the
pod's own. A lost node is told of late: its pods stay until the node is forgotten and the garbage collector ends them.
"""

from __future__ import annotations

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.deletion import begin_deletion
from runtender.local.kubernetes.documents import Document, Key, is_ending, set_condition, stamp, uid_of
from runtender.local.kubernetes.events import KillReason
from runtender.local.kubernetes.kubelet import Kubelet
from runtender.local.kubernetes.nodes import Nodes, node_key
from runtender.local.kubernetes.pod_status import let_go
from runtender.local.kubernetes.pods import grace_s, is_over, node_of, pod_key
from runtender.local.kubernetes.recorder import Recorder

_SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
_LOW = "The node was low on resource: memory."
_UNREACHABLE = "node.kubernetes.io/unreachable"
_SHUTDOWN_GRACE_S = 15


class Disruptions:
    """What a scenario, or an API call, does to pods and nodes."""

    def __init__(self, cluster: Cluster, recorder: Recorder, nodes: Nodes, kubelet: Kubelet) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._nodes = nodes
        self._kubelet = kubelet

    def evict(self, key: Key) -> bool:
        """Let a node that is short of memory end a pod; False when there is no such pod at work."""
        pod = self._at_work(key)
        if pod is None:
            return False
        self._target(key, "TerminationByKubelet", _LOW)
        self._recorder.warning(pod, "kubelet", "Evicted", _LOW)
        self._kubelet.stop(uid_of(pod), KillReason.EVICTED, 0, reason="Evicted", message=_LOW)
        return True

    def preempt(self, key: Key) -> bool:
        """Let a pod make room for one that matters more; False when there is no such pod at work."""
        pod = self._at_work(key)
        if pod is None:
            return False
        words = "default-scheduler: preempting to accommodate a higher priority pod"
        self._target(key, "PreemptionByScheduler", words)
        self._recorder.normal(pod, "default-scheduler", "Preempted", "Preempted by another pod")
        begin_deletion(self._cluster, key, grace_s(pod))
        return True

    def evict_by_api(self, key: Key, grace: int) -> None:
        """Let a pod go because somebody asked for it, as a drain of its node does."""
        self._target(key, "EvictionByEvictionAPI", "Eviction API: evicting")
        begin_deletion(self._cluster, key, grace)

    def take_node(self, name: str) -> bool:
        """Take a Spot node away with a warning; False when there is none."""
        if self._cluster.store.get(node_key(name)) is None:
            return False
        for pod in self._pods_on(name):
            self._target(pod_key(pod), "TerminationByKubelet", _SHUTDOWN)
            grace = min(_SHUTDOWN_GRACE_S, grace_s(pod))
            why = KillReason.PREEMPTED
            self._kubelet.stop(uid_of(pod), why, grace, reason="Terminated", message=_SHUTDOWN)
        self._mark(name, "False", "KubeletNotReady", "node is shutting down")
        span = _SHUTDOWN_GRACE_S * self._cluster.timings.grace_unit + self._cluster.timings.kill_margin
        self._cluster.later(span, lambda: self._remove(name))
        return True

    def lose_node(self, name: str) -> bool:
        """Let the machine of a node be gone without a word; False when there is none."""
        if self._cluster.store.get(node_key(name)) is None or name in self._nodes.lost:
            return False
        self._kubelet.lose(name)
        self._nodes.lost.add(name)
        timings = self._cluster.timings
        self._cluster.later(timings.node_silence, lambda: self._miss(name))
        self._cluster.later(timings.node_silence + timings.node_eviction, lambda: self._give_up(name))
        self._cluster.later(timings.node_removal, lambda: self._remove(name))
        return True

    def _miss(self, name: str) -> None:
        """Notice that a node is silent."""
        self._mark(name, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        now = self._cluster.now
        for pod in self._pods_on(name):
            self._cluster.store.edit(
                pod_key(pod), lambda copy: set_condition(copy, "Ready", False, now, reason="NodeNotReady")
            )

    def _give_up(self, name: str) -> None:
        """Tell the pods of a silent node to go. There is nobody to obey: they stay, terminating."""
        for pod in self._pods_on(name):
            key = pod_key(pod)
            self._target(key, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
            self._recorder.normal(pod, "taint-eviction-controller", "TaintManagerEviction",
                                  f"Marking for deletion Pod {key.namespace}/{key.name}")  # fmt: skip
            begin_deletion(self._cluster, key, grace_s(pod))

    def _remove(self, name: str) -> None:
        """Forget a node whose machine is gone; what was on it is ended a little later."""
        self._cluster.store.remove(node_key(name))
        self._cluster.later(self._cluster.timings.orphan_pod, lambda: self._collect(name))

    def _collect(self, name: str) -> None:
        now = self._cluster.now

        def end(pod: Document) -> None:
            pod["status"]["phase"] = "Failed"
            if not is_ending(pod):
                pod["metadata"]["deletionTimestamp"] = stamp(now)
            let_go(pod)

        for pod in self._pods_on(name):
            self._target(pod_key(pod), "DeletionByPodGC", "PodGC: node no longer exists")
            self._cluster.store.edit(pod_key(pod), end)

    def _mark(self, name: str, status: str, reason: str, message: str) -> None:
        now = self._cluster.now

        def mark(node: Document) -> None:
            set_condition(node, "Ready", False, now, reason=reason, message=message)
            node["status"]["conditions"][0]["status"] = status
            if status == "Unknown":
                taints = node["spec"].setdefault("taints", [])
                taints += [{"key": _UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]

        self._cluster.store.edit(node_key(name), mark)

    def _pods_on(self, node: str) -> list[Document]:
        pods = self._cluster.store.each("pods")
        return [pod for pod in pods if node_of(pod) == node and not is_over(pod)]

    def _at_work(self, key: Key) -> Document | None:
        pod = self._cluster.store.get(key)
        return None if pod is None or is_over(pod) or is_ending(pod) or not node_of(pod) else pod

    def _target(self, key: Key, reason: str, message: str) -> None:
        now = self._cluster.now

        def mark(pod: Document) -> None:
            set_condition(pod, "DisruptionTarget", True, now, reason=reason, message=message)

        self._cluster.store.edit(key, mark)

"""The machines of a cluster: pools of like nodes, what each node can hold, and how pools grow and shrink."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from runtender.forecast.catalogue import GIB
from runtender.forecast.machines import shape_of
from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.documents import Document, Key, labels_of, set_condition
from runtender.local.kubernetes.quantities import quantity

GPU = "nvidia.com/gpu"
POOL_LABEL = "cloud.google.com/gke-nodepool"

_PODS_PER_NODE = 110
_UNKNOWN_GIB = 8
# What GKE keeps of a node for itself: a share of each further core, and of each further stretch of memory in GiB.
_CORE_SHARES = ((1, 0.06), (1, 0.01), (2, 0.005))
_OTHER_CORES_SHARE = 0.0025
_MEMORY_SHARES = ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06))
_OTHER_MEMORY_SHARE = 0.02
_EVICTION_GIB = 0.1
_READY = "kubelet is posting ready status"


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePool:
    """Nodes of one kind: `nodes` at first, and up to `most` (None: no more than at first) when pods wait for room.

    Nodes with accelerators carry the taint that keeps other pods away, as GKE sets it.
    """

    name: str = "default-pool"
    machine_type: str = "n2-standard-8"
    nodes: int = 3
    most: int | None = None
    accelerator: str = ""
    accelerator_count: int = 0
    spot: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()

    @property
    def limit(self) -> int:
        """How many nodes there may be."""
        return self.nodes if self.most is None else self.most


class Nodes:
    """The nodes that are there, by pool, and the machines behind them."""

    def __init__(self, cluster: Cluster, pools: Iterable[NodePool], zone: str) -> None:
        self._cluster = cluster
        self._zone = zone
        self.pools = {pool.name: pool for pool in pools}
        self._made = dict.fromkeys(self.pools, 0)
        self._growing = dict.fromkeys(self.pools, 0)
        self.lost: set[str] = set()
        """Nodes whose machine is gone: nothing runs there and nobody reports."""
        for pool in self.pools.values():
            for _ in range(pool.nodes):
                self.add(pool)

    def of_pool(self, pool: NodePool) -> list[Document]:
        """Return a pool's nodes."""
        nodes = self._cluster.store.each("nodes")
        return [node for node in nodes if labels_of(node).get(POOL_LABEL) == pool.name]

    def add(self, pool: NodePool) -> Document:
        """Let a node join at once."""
        self._made[pool.name] += 1
        name = f"gke-{self._cluster.name}-{pool.name}-{self._made[pool.name]:04d}"
        node = self.blank(pool, name)
        set_condition(node, "Ready", True, self._cluster.now, reason="KubeletReady", message=_READY)
        return self._cluster.store.put("nodes", self._cluster.complete(node))

    def grow(self, pool: NodePool) -> bool:
        """Order one more node of a pool, which joins later; False when the pool may not grow."""
        count = len(self.of_pool(pool)) + self._growing[pool.name]
        if count >= pool.limit:
            return False
        self._growing[pool.name] += 1
        self._cluster.later(self._cluster.timings.scale_up, lambda: self._join(pool.name))
        return True

    def ordered(self, pool: NodePool) -> int:
        """Return how many nodes of a pool are on their way."""
        return self._growing[pool.name]

    def blank(self, pool: NodePool, name: str) -> Document:
        """Return a node of a pool as it would be: also how it is found out whether one would help."""
        accelerator = {"cloud.google.com/gke-accelerator": pool.accelerator} if pool.accelerator else {}
        labels = {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": pool.machine_type,
            "topology.kubernetes.io/region": self._zone.rpartition("-")[0],
            "topology.kubernetes.io/zone": self._zone,
            POOL_LABEL: pool.name,
            **accelerator,
            **({"cloud.google.com/gke-spot": "true"} if pool.spot else {}),
            **pool.labels,
        }
        gpu_taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}
        taints = [*([gpu_taint] if pool.accelerator_count else []), *(dict(taint) for taint in pool.taints)]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "providerID": f"gce://local/{self._zone}/{name}",
                **({"taints": taints} if taints else {}),
            },
            "status": _status(self._cluster.minor, name, pool),
        }

    def _join(self, name: str) -> None:
        self._growing[name] -= 1
        self.add(self.pools[name])


def node_key(name: str) -> Key:
    """Return where a node is kept."""
    return Key(resource="nodes", namespace="", name=name)


def _status(minor: int, name: str, pool: NodePool) -> dict[str, Any]:
    shape = shape_of(pool.machine_type)
    gib = shape.memory_bytes / GIB or _UNKNOWN_GIB
    gpus = {GPU: str(pool.accelerator_count)} if pool.accelerator_count else {}
    pods = {"pods": str(_PODS_PER_NODE)}
    return {
        "capacity": {"cpu": str(shape.vcpus), "memory": str(int(gib * GIB)), **gpus, **pods},
        "allocatable": {
            "cpu": quantity(Decimal(int(1000 * (shape.vcpus - _kept_cores(shape.vcpus)))) / 1000),
            "memory": str(int((gib - _kept_gib(gib)) * GIB)),
            **gpus,
            **pods,
        },
        "addresses": [{"type": "Hostname", "address": name}],
        "conditions": [],
        "nodeInfo": {
            "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "containerd://2.0", "kernelVersion": "6.6",
            "kubeProxyVersion": "", "kubeletVersion": f"v1.{minor}.0", "machineID": "", "operatingSystem": "linux",
            "osImage": "Container-Optimized OS from Google", "systemUUID": "",
        },
    }  # fmt: skip


def _kept_cores(cores: int) -> float:
    return _shares(cores, _CORE_SHARES, _OTHER_CORES_SHARE)


def _kept_gib(gib: float) -> float:
    return _shares(gib, _MEMORY_SHARES, _OTHER_MEMORY_SHARE) + _EVICTION_GIB


def _shares(amount: float, stretches: Iterable[tuple[int, float]], beyond: float) -> float:
    kept = 0.0
    for width, share in stretches:
        kept += min(amount, width) * share
        amount = max(0.0, amount - width)
    return kept + amount * beyond


def taints_of(node: Document) -> tuple[Mapping[str, str], ...]:
    """Return what keeps pods off a node."""
    return tuple(node["spec"].get("taints") or ())

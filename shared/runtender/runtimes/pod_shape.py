"""What a worker's pod asks of a node: processors, memory, GPUs, and which nodes it takes.

On a cluster with nodes of its own a pod asks for most of one node, so that exactly one fits, and its requests follow the
nodes that are really there. An Autopilot makes the node for the pod: there it asks for all that the worker needs, and
selects only by what an Autopilot knows.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from runtender.forecast.catalogue import GIB
from runtender.forecast.machines import pod_requests
from runtender.forecast.sizing import unit_of
from runtender.model import JobPlan, KubernetesPlan

Body = dict[str, Any]

_GPU = "nvidia.com/gpu"
_POOL_TAINT = "scale-forecasting/pool"
_NODE_GPU = "cloud.google.com/gke-accelerator"
_NODE_SPOT = "cloud.google.com/gke-spot"
_COMPUTE_CLASS = "cloud.google.com/compute-class"

# Where the node's memory is not known: a quarter of the 4 GiB that a pod then asks for.
_UNKNOWN_SHARED_BYTES = GIB
_UNKNOWN_AUTOPILOT_GIB = 8
# An Autopilot's general-purpose pods have from 1 to 6.5 GiB per vCPU; what is asked for beyond that is raised, and paid.
_LEAST_GIB_PER_VCPU, _MOST_GIB_PER_VCPU = 1, 6.5


def node_machine(plan: JobPlan, kubernetes: KubernetesPlan) -> str:
    """Return the machine type of the nodes: the standing cluster's where it was found out, else the plan's."""
    return kubernetes.node_machine_type or plan.machine_type


def resources(plan: JobPlan, kubernetes: KubernetesPlan) -> Body:
    """Return requests and limits of a pod. What it may put into `/dev/shm` is part of the memory it asks for."""
    machine = node_machine(plan, kubernetes)
    cpu, memory = _autopilot_requests(plan, kubernetes) if kubernetes.autopilot else pod_requests(machine)
    requests = {"cpu": cpu, "memory": memory}
    if not plan.accelerator_count:
        return {"requests": requests}
    gpus = {_GPU: str(plan.accelerator_count)}
    return {"requests": {**requests, **gpus}, "limits": gpus}


def shared_memory_bytes(plan: JobPlan, kubernetes: KubernetesPlan) -> int:
    """Return the bound of `/dev/shm`: the plan's, and never more than the actual node has for it."""
    node = unit_of(node_machine(plan, kubernetes), 0).shared_memory_bytes or _UNKNOWN_SHARED_BYTES
    return min(plan.shm_size_bytes or node, node)


def tolerations(plan: JobPlan, kubernetes: KubernetesPlan) -> list[Body]:
    """Return the taints that a pod puts up with. An Autopilot writes its own; to one of ours it would give a node."""
    if kubernetes.autopilot:
        return []
    keys = [_POOL_TAINT, *([_GPU] if plan.accelerator_count else [])]
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


def node_selector(plan: JobPlan, kubernetes: KubernetesPlan) -> dict[str, str]:
    """Return the labels of the nodes that a pod takes; empty for any node."""
    selector: dict[str, str] = {}
    if plan.accelerator_count and plan.accelerator_type:
        selector[_NODE_GPU] = plan.accelerator_type
    if kubernetes.compute_class:
        selector[_COMPUTE_CLASS] = kubernetes.compute_class
    if kubernetes.autopilot and plan.spot:
        # Elsewhere the pools decide what is Spot; here only the pod can.
        selector[_NODE_SPOT] = "true"
    return selector


def _autopilot_requests(plan: JobPlan, kubernetes: KubernetesPlan) -> tuple[str, str]:
    """Return the CPU and memory that the worker was sized for: an Autopilot gives a pod what it asks for and no more."""
    unit = unit_of(node_machine(plan, kubernetes), 0)
    known = (unit.schedulable_memory or 0) + unit.shared_memory_bytes
    cpu, gib = unit.schedulable_cores, max(1, known // GIB or _UNKNOWN_AUTOPILOT_GIB)
    if not plan.accelerator_count and not kubernetes.compute_class:
        gib = max(gib, cpu * _LEAST_GIB_PER_VCPU)
        cpu = max(cpu, ceil(gib / _MOST_GIB_PER_VCPU))
    return str(cpu), f"{gib}Gi"

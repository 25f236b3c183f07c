"""What a plan on Kubernetes adds to one on a VM: the node pools of a cluster that is made for it, the nodes of one that stands,
and how telemetry shows it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtender.forecast import machines
from runtender.forecast.catalogue import Catalogue
from runtender.model import JobPlan, NodePool, RayNodes, RayShape
from runtender.observed import ClusterFacts

SYSTEM_MACHINE = "e2-standard-2"
"""Where a cluster's own pods run when all other nodes have GPUs, which keep everything else away."""


def plan_json(plan: JobPlan) -> dict[str, Any]:
    """Return the job's telemetry `gke_job`; the plan is one on Kubernetes."""
    kubernetes = plan.kubernetes
    if kubernetes is None:
        raise ValueError(f"{plan.name} does not run on Kubernetes")
    subnets = [place.subnetwork_uri for place in plan.placements[:1]]
    return {
        "job_name": plan.name,
        "gke_mode": kubernetes.mode,
        "cluster_name": kubernetes.cluster_name,
        "ephemeral_cluster": kubernetes.ephemeral,
        "namespace": kubernetes.namespace,
        "machine_type": plan.machine_type,
        "accelerator_type": plan.accelerator_type,
        "accelerator_count": plan.accelerator_count,
        "worker_count": plan.worker_count,
        "requested_workers": kubernetes.requested_workers,
        "hardware": plan.hardware,
        "gpu_type": plan.gpu_type,
        "image_uri": plan.image_uri,
        "package_uri": plan.package_uri,
        "config_uri": plan.config_uri,
        "subnetwork_uri": subnets[0] if subnets else "",
        "boot_disk_gb": plan.boot_disk_gb,
        "resource_plan": plan.resource_plan,
        "ray_cluster_plan": ray_json(kubernetes.ray) if kubernetes.ray else None,
    }


def ray_json(ray: RayShape) -> dict[str, Any]:
    """Return the part of a Ray cluster's shape that telemetry shows."""
    pools = [pool for pool in (ray.cpu, ray.gpu) if pool is not None]
    return {
        "cluster_name": ray.cluster_name,
        "cpu_machine_type": ray.cpu.machine_type if ray.cpu else None,
        "cpu_node_count": ray.cpu.node_count if ray.cpu else 0,
        "gpu_machine_type": ray.gpu.machine_type if ray.gpu else None,
        "gpu_node_count": ray.gpu.node_count if ray.gpu else 0,
        "total_worker_nodes": sum(pool.node_count for pool in pools),
    }


def node_machine(machine_type: str, facts: ClusterFacts, catalogue: Catalogue) -> str:
    """Return the machine type of a standing cluster's nodes where it is not the plan's own; empty where it is, or is not known.

    Of several other pools the smallest that is as large as planned counts, else the largest: a pod that asks for more than
    any node has would wait for ever.
    """
    known = [name for name in facts.machine_types if _cores(name, catalogue)]
    if facts.autopilot or machine_type in facts.machine_types or not known:
        return ""
    wanted = _cores(machine_type, catalogue)
    known.sort(key=lambda name: (_cores(name, catalogue), name))
    return next((name for name in known if _cores(name, catalogue) >= wanted), known[-1])


def _cores(machine_type: str, catalogue: Catalogue) -> int:
    shape = machines.shape_of(machine_type, catalogue)
    return shape.vcpus if shape.memory_bytes else 0


def node_pools(job: JobPlan, ray: RayShape | None, disk_of: Mapping[str, str]) -> tuple[NodePool, ...]:
    """Return the pools of a cluster made for this job; `disk_of` has the boot disk type of each machine type.

    A pool with GPUs starts empty and grows when pods ask for it. Then a small pool beside it has the cluster's own
    pods; otherwise the workers' nodes have room for them.
    """
    workers = _ray_pools(ray, job, disk_of) if ray else (_workers(job, disk_of),)
    if any(not pool.accelerator_count for pool in workers):
        return workers
    system = NodePool(
        name="system",
        machine_type=SYSTEM_MACHINE,
        disk_type=disk_of[SYSTEM_MACHINE],
        start=1,
        least=1,
        most=1,
    )
    return (system, *workers)


def _workers(job: JobPlan, disk_of: Mapping[str, str]) -> NodePool:
    return _pool("workers", job, job.machine_type, job.worker_count, job.worker_count, disk_of)


def _ray_pools(ray: RayShape, job: JobPlan, disk_of: Mapping[str, str]) -> tuple[NodePool, ...]:
    pools: dict[str, RayNodes | None] = {"cpu": ray.cpu, "gpu": ray.gpu}
    return tuple(
        _pool(name, job, pool.machine_type, pool.node_count, pool.most_nodes, disk_of, on_gpu=name == "gpu")
        for name, pool in pools.items()
        if pool is not None
    )


def _pool(
    name: str,
    job: JobPlan,
    machine_type: str,
    nodes: int,
    most: int,
    disk_of: Mapping[str, str],
    *,
    on_gpu: bool = True,
) -> NodePool:
    with_gpus = on_gpu and job.accelerator_count > 0
    return NodePool(
        name=name,
        machine_type=machine_type,
        disk_type=disk_of[machine_type],
        start=0 if with_gpus else max(1, nodes),
        least=0 if with_gpus else 1,
        most=max(1, most),
        accelerator_type=job.accelerator_type if with_gpus else "",
        accelerator_count=job.accelerator_count if with_gpus else 0,
        spot=job.spot,
    )


def disk_types(machine_types: Sequence[str], disk_type: Any) -> Mapping[str, str]:
    """Return the boot disk type of each machine type, and of the system pool's."""
    return {machine: disk_type(machine) for machine in (*machine_types, SYSTEM_MACHINE)}

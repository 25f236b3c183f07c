"""The plan of a job on Kubernetes: an Indexed Job with a pod per worker, or a Ray cluster, on a cluster that stands or is
made for it. Pure, and apart from the plan of a VM only in what Kubernetes adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from runtender.forecast.ray import RayPlan
from runtender.model import JobPlan

SYSTEM_MACHINE = "e2-standard-2"
"""Where a cluster's own pods run when all other nodes have GPUs, which keep everything else away."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePool:
    """Equal nodes of a cluster that is made for one job: `start` of them at first, between `least` and `most` later."""

    name: str
    machine_type: str
    disk_type: str
    start: int
    least: int
    most: int
    accelerator_type: str = ""
    accelerator_count: int = 0
    spot: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class GkePlan:
    """A job's plan with what Kubernetes needs beside it. `job.worker_count` is the effective number of workers.

    `job_deadline` bounds the Job from its creation, `pod_deadline` a pod from its start. `pools` is empty for a cluster
    that stands. `ray` is None for an Indexed Job.
    """

    job: JobPlan
    gke_mode: str
    cluster_name: str
    ephemeral_cluster: bool
    namespace: str
    requested_workers: int
    job_deadline: timedelta
    pod_deadline: timedelta
    cluster_location: str | None = None
    keep_cluster: bool = False
    pools: tuple[NodePool, ...] = ()
    ray: RayPlan | None = None

    @property
    def max_cluster_age(self) -> timedelta:
        """How old a cluster of this job can get: its nodes end by themselves after that."""
        return self.job_deadline

    def to_json(self) -> dict[str, Any]:
        """Return the job's telemetry `gke_job`."""
        job = self.job
        subnets = [place.subnetwork_uri for place in job.placements[:1]]
        return {
            "job_name": job.name,
            "gke_mode": self.gke_mode,
            "cluster_name": self.cluster_name,
            "ephemeral_cluster": self.ephemeral_cluster,
            "namespace": self.namespace,
            "machine_type": job.machine_type,
            "accelerator_type": job.accelerator_type,
            "accelerator_count": job.accelerator_count,
            "worker_count": job.worker_count,
            "requested_workers": self.requested_workers,
            "hardware": job.hardware,
            "gpu_type": job.gpu_type,
            "image_uri": job.image_uri,
            "package_uri": job.package_uri,
            "config_uri": job.config_uri,
            "subnetwork_uri": subnets[0] if subnets else "",
            "boot_disk_gb": job.boot_disk_gb,
            "resource_plan": job.resource_plan,
            "ray_cluster_plan": self.ray.to_json() if self.ray else None,
        }


def node_pools(job: JobPlan, ray: RayPlan | None, disk_of: Mapping[str, str]) -> tuple[NodePool, ...]:
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


def _ray_pools(ray: RayPlan, job: JobPlan, disk_of: Mapping[str, str]) -> tuple[NodePool, ...]:
    pools = {"cpu": ray.cpu, "gpu": ray.gpu}
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

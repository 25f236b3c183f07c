"""The planner of forecasts on Kubernetes: a run config and a submit message in, one plan per family out.

It resolves the same things as the planner of VMs, in the same order, and then the cluster: a name in the message, in the
config or in the settings means one that stands; without a name the job gets its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from runtender import ids
from runtender.forecast import machines
from runtender.forecast.blocks import RunConfig
from runtender.forecast.canonical import run_id_of
from runtender.forecast.compute import FamilyCompute
from runtender.forecast.families import models_of, panel_models, pool_families
from runtender.forecast.gke import GkePlan, disk_types, node_pools
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.plan import Shared, staged
from runtender.forecast.ray import RayPlan, plan_ray
from runtender.forecast.selection import GKE_RUNTIMES, check_served, select_models
from runtender.forecast.sizing import PoolPlan
from runtender.forecast.terms import Hardware, check_deployment
from runtender.forecast.validation import FieldReader, shown
from runtender.model import JobPlan, Placement, SubmitRequest, WalkPolicy
from runtender.settings import Settings
from runtender.worker.topology import effective_worker_count

MODES = ("job", "ray")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """What one family asks for: the config's word and the message's."""

    compute: FamilyCompute
    override: Mapping[str, Any]
    mode: str


def _asked(shared: Shared, family: str) -> _Asked | None:
    compute = shared.compute_of(family)
    override = shared.override_of(compute)
    mode = override.get("gke_mode") or compute.gke_mode
    if mode is None:
        shared.reader.fault("compute.ray_mode", '"vertex" is not served by this plane', 'write "gke"')
        return None
    if mode not in MODES:
        field = f"overrides.{family}.gke_mode"
        shared.reader.fault(field, f"{shown(mode)} is not a mode", "write job or ray")
        return None
    return _Asked(compute=compute, override=override, mode=mode)


def _on_kubernetes(shared: Shared, family: str, models: tuple[str, ...], attempt: int) -> GkePlan | None:
    """Return one family's job; None, with a fault, where it cannot be planned."""
    asked = _asked(shared, family)
    hardware = shared.hardware_of(asked.compute, asked.override) if asked else None
    if asked is None or hardware is None:
        return None
    key = ids.JobKey(run_id=shared.run_id, family=family, attempt=attempt)
    if asked.mode == "job":
        return _indexed_job(shared, asked, key, models, hardware)
    try:
        ray = _ray(shared, models, hardware)
    except ValueError as error:
        shared.reader.fault(f"overrides.{family}", str(error))
        return None
    return _ray_job(shared, asked, key, models, hardware, ray)


def _indexed_job(
    shared: Shared, asked: _Asked, key: ids.JobKey, models: tuple[str, ...], hardware: Hardware
) -> GkePlan:
    requested = int(asked.override.get("workers") or asked.compute.workers or 1)
    workers = effective_worker_count(
        models,
        requested,
        n_series=shared.config.data.series_limit,
        panel=frozenset(panel_models(models, shared.config.model_params)),
        hierarchy=shared.config.hierarchy_enabled,
    )
    sizing = shared.sizing_of(key.family, models, hardware, runtime="gke", workers=workers)
    job = _job(shared, key, models, hardware, sizing, workers)
    return _on_cluster(shared, asked, job, requested=requested)


def _ray_job(
    shared: Shared,
    asked: _Asked,
    key: ids.JobKey,
    models: tuple[str, ...],
    hardware: Hardware,
    ray: RayPlan,
) -> GkePlan:
    pool = ray.gpu if hardware.gpu_type and ray.gpu else ray.cpu or ray.gpu
    if pool is None:
        raise ValueError("a family without models has no job")
    workers = int(asked.override.get("workers") or max(1, ray.total_worker_nodes))
    # The nodes of the pool that does the work, not those of a VM that nobody makes.
    hardware = replace(hardware, machine_type=pool.machine_type)
    job = _job(shared, key, models, hardware, pool.sizing, workers)
    return _on_cluster(shared, asked, job, requested=workers, ray=ray)


def _ray(shared: Shared, models: tuple[str, ...], hardware: Hardware) -> RayPlan:
    compute = shared.config.compute
    return plan_ray(
        compute,
        models,
        basis=shared.series,
        gpu_type=hardware.gpu_type,
        accelerators=hardware.accelerators,
        cluster_name=compute.ray_cluster_name or ids.ray_cluster_name(shared.run_id),
        knowledge=shared.knowledge,
    )


def _job(
    shared: Shared,
    key: ids.JobKey,
    models: tuple[str, ...],
    hardware: Hardware,
    sizing: PoolPlan,
    workers: int,
) -> JobPlan:
    job = shared.job(key, models, hardware, sizing)
    return replace(
        job,
        runtime="gke",
        name=ids.gke_job_id(ids.job_key(key.run_id, key.family, key.attempt)),
        labels={**job.labels, "runtime": "gke"},
        worker_count=workers,
    )


def _on_cluster(
    shared: Shared, asked: _Asked, job: JobPlan, *, requested: int, ray: RayPlan | None = None
) -> GkePlan:
    compute, override = shared.config.compute, asked.override
    standing = override.get("cluster_name") or asked.compute.gke_cluster_name or shared.settings.gke_cluster
    if asked.mode == "ray":
        standing = standing or compute.ray_cluster_name or ""
    pools = [pool.machine_type for pool in (ray.cpu, ray.gpu) if pool] if ray else []
    disks = disk_types(
        [job.machine_type, *pools], partial(machines.disk_type, catalogue=shared.knowledge.catalogue)
    )
    return GkePlan(
        job=job,
        gke_mode=asked.mode,
        cluster_name=standing or ids.cluster_name(job.name),
        ephemeral_cluster=not standing,
        namespace=compute.gke_namespace,
        requested_workers=requested,
        # The Job's clock runs while its pods wait for nodes, a pod's only from its start.
        job_deadline=job.capacity_wait + job.max_run_duration,
        pod_deadline=job.max_run_duration - shared.settings.timing.fence_margin,
        cluster_location=override.get("cluster_location"),
        keep_cluster=override.get("keep_cluster", False),
        pools=() if standing else node_pools(job, ray, disks),
        ray=ray,
    )


def plan_gke_run(
    config: RunConfig,
    request: SubmitRequest,
    settings: Settings,
    *,
    placements: tuple[Placement, ...],
    walk: WalkPolicy,
    attempts: Mapping[str, int] | None = None,
    knowledge: Knowledge | None = None,
) -> dict[str, GkePlan]:
    """Return the plan of each family's job, in the config's order; attempts that are not given are the first.

    Raises `Rejected` with every reason why the run cannot be served as it was asked for.
    """
    reader = FieldReader()
    models = select_models(reader, config, request)
    check_served(reader, config, request, models, served=GKE_RUNTIMES)
    check_deployment(reader, settings)
    run_id = run_id_of(config)
    shared = Shared(
        reader=reader,
        config=config,
        request=request,
        settings=settings,
        staged=staged(reader, request, settings, run_id),
        placements=placements,
        walk=walk,
        run_id=run_id,
        knowledge=knowledge or Knowledge(),
    )
    reader.finish()
    plans = {
        family: _on_kubernetes(shared, family, models_of(models, family), (attempts or {}).get(family, 1))
        for family in pool_families(models)
    }
    reader.finish()
    return {family: plan for family, plan in plans.items() if plan is not None}

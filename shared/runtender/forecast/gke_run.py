"""The planner of forecasts on Kubernetes: a run config and a submit message in, one plan per family out.

It resolves the same things as the planner of VMs, in the same order, and then the cluster: a name in the message, in the
config or in the settings means one that stands; without a name the job gets its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from runtender import ids
from runtender.forecast import machines
from runtender.forecast.blocks import RunConfig
from runtender.forecast.catalogue import Catalogue
from runtender.forecast.compute import FamilyCompute, resolve_family_compute
from runtender.forecast.families import panel_models
from runtender.forecast.gke import disk_types, node_machine, node_pools
from runtender.forecast.plan import Shared
from runtender.forecast.ray import RayPlan, plan_ray
from runtender.forecast.terms import Hardware, for_attempt
from runtender.forecast.validation import cluster_location, cluster_name, shown
from runtender.model import JobPlan, KubernetesPlan, NodePool, Placement, RayShape, SubmitRequest
from runtender.observed import ClusterFacts
from runtender.settings import Settings
from runtender.worker.topology import effective_worker_count

GKE = "gke"
MODES = ("job", "ray")


class ClusterName(NamedTuple):
    """A cluster as somebody named it; `location` None: wherever it is."""

    name: str
    location: str | None

    @classmethod
    def parse(cls, text: str, location: str | None = None) -> ClusterName:
        """Read `name` or `location/name`; a location that is given besides goes before that."""
        place, _, name = text.rpartition("/")
        return cls(name, location or place or None)


Clusters = Mapping[ClusterName, ClusterFacts]
"""Standing clusters as they were found, by the names they were asked for by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """The cluster that was named, if any was, and what was found of it, if it was looked up."""

    named: ClusterName | None
    facts: ClusterFacts | None


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


def on_kubernetes(
    shared: Shared, key: ids.JobKey, models: tuple[str, ...], clusters: Clusters, *, only_served: bool
) -> JobPlan | None:
    """Return one family's job on Kubernetes; None, with a fault, where it cannot be planned."""
    asked = _asked(shared, key.family)
    hardware = shared.hardware_of(asked.compute, asked.override) if asked else None
    if asked is None or hardware is None:
        return None
    named = _named(shared.config, shared.settings, asked.compute, asked.override, asked.mode)
    if only_served and not _is_served(shared, asked, named):
        return None
    place = _Place(named=named, facts=clusters.get(named) if named else None)
    if asked.mode == "job":
        return _indexed_job(shared, asked, key, models, hardware, place)
    try:
        ray = _ray(shared, models, hardware)
    except ValueError as error:
        shared.reader.fault(f"overrides.{key.family}", str(error))
        return None
    return _ray_job(shared, asked, key, models, hardware, ray, place)


def cluster_wanted(
    config: RunConfig, request: SubmitRequest, settings: Settings, family: str, catalogue: Catalogue
) -> ClusterName | None:
    """Return the cluster that somebody named for a family on Kubernetes; None where it would get its own."""
    compute = resolve_family_compute(config.compute, config.python_runtime, family, catalogue)
    override = request.overrides.get(family, {})
    mode = override.get("gke_mode") or compute.gke_mode
    for name, kind in (("cluster_name", cluster_name()), ("cluster_location", cluster_location())):
        if override.get(name) is not None and not kind.accepts(override[name]):
            # The planner says what is wrong with it; nothing is asked about it before.
            return None
    return _named(config, settings, compute, override, mode)


def _named(
    config: RunConfig, settings: Settings, compute: FamilyCompute, override: Mapping[str, Any], mode: Any
) -> ClusterName | None:
    named = override.get("cluster_name") or compute.gke_cluster_name or settings.gke_cluster
    if mode == "ray":
        named = named or config.compute.ray_cluster_name
    return ClusterName.parse(str(named), override.get("cluster_location")) if named else None


def _is_served(shared: Shared, asked: _Asked, named: ClusterName | None) -> bool:
    """Fault what can be planned and shown, but not run yet."""
    if asked.mode == "ray":
        shared.reader.fault("compute.gke_mode", "Ray on GKE is not run by this plane yet", "write job")
    elif named is None:
        remedy = "name one that stands: SF_GKE_CLUSTER, or compute.gke_cluster_name"
        problem = "this plane makes no cluster for a job yet"
        shared.reader.fault("compute.gke_cluster_name", problem, remedy)
    return asked.mode != "ray" and named is not None


def _indexed_job(
    shared: Shared,
    asked: _Asked,
    key: ids.JobKey,
    models: tuple[str, ...],
    hardware: Hardware,
    place: _Place,
) -> JobPlan:
    requested = int(asked.override.get("workers") or asked.compute.workers or 1)
    workers = effective_worker_count(
        models,
        requested,
        n_series=shared.config.data.series_limit,
        panel=frozenset(panel_models(models, shared.config.model_params)),
        hierarchy=shared.config.hierarchy_enabled,
    )
    sizing = shared.sizing_of(key.family, models, hardware, runtime="gke", workers=workers)
    job = on_pods(shared.job(key, models, hardware, sizing), shared.settings, key, workers)
    return _on_cluster(shared, asked, job, place, requested=requested)


def _ray_job(
    shared: Shared,
    asked: _Asked,
    key: ids.JobKey,
    models: tuple[str, ...],
    hardware: Hardware,
    ray: RayPlan,
    place: _Place,
) -> JobPlan:
    pool = ray.gpu if hardware.gpu_type and ray.gpu else ray.cpu or ray.gpu
    if pool is None:
        raise ValueError("a family without models has no job")
    workers = int(asked.override.get("workers") or max(1, ray.total_worker_nodes))
    # The nodes of the pool that does the work, not those of a VM that nobody makes.
    hardware = replace(hardware, machine_type=pool.machine_type)
    job = on_pods(shared.job(key, models, hardware, pool.sizing), shared.settings, key, workers)
    return _on_cluster(shared, asked, job, place, requested=workers, ray=ray)


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


def on_pods(job: JobPlan, settings: Settings, key: ids.JobKey, workers: int) -> JobPlan:
    """Return a VM's plan as one of `workers` pods: under the name that Kubernetes takes, and its labels."""
    plan = replace(job, runtime=GKE, labels={**job.labels, "runtime": GKE}, worker_count=workers)
    return for_attempt(plan, settings, key)


def _on_cluster(
    shared: Shared, asked: _Asked, job: JobPlan, place: _Place, *, requested: int, ray: RayPlan | None = None
) -> JobPlan:
    shape = ray.shape if ray else None
    kubernetes = on_cluster(
        job, place.named, place.facts, shared.settings, shared.knowledge.catalogue, requested=requested
    )
    kubernetes = replace(
        kubernetes,
        mode=asked.mode,
        namespace=shared.config.compute.gke_namespace,
        keep_cluster=asked.override.get("keep_cluster", False),
        pools=_own_pools(shared, job, shape) if place.named is None else (),
        ray=shape,
    )
    return placed(replace(job, kubernetes=kubernetes))


def _own_pools(shared: Shared, job: JobPlan, ray: RayShape | None) -> tuple[NodePool, ...]:
    pools = [pool.machine_type for pool in (ray.cpu, ray.gpu) if pool] if ray else []
    disk_of = partial(machines.disk_type, catalogue=shared.knowledge.catalogue)
    return node_pools(job, ray, disk_types([job.machine_type, *pools], disk_of))


def on_cluster(
    job: JobPlan,
    named: ClusterName | None,
    facts: ClusterFacts | None,
    settings: Settings,
    catalogue: Catalogue,
    *,
    requested: int,
) -> KubernetesPlan:
    """Return what Kubernetes adds to a plan, on a cluster that stands (`facts`: as it was found) or on one of its own."""
    plan = KubernetesPlan(
        mode="job",
        cluster_name=named.name if named else ids.cluster_name(job.name),
        cluster_location=named.location if named else None,
        ephemeral=named is None,
        requested_workers=requested,
        # The Job's clock runs while its pods wait for nodes, a pod's only from its start.
        job_deadline=job.capacity_wait + job.max_run_duration,
        pod_deadline=job.max_run_duration - settings.timing.fence_margin,
        compute_class=settings.gke_compute_class,
        service_account_name=settings.gke_service_account,
        retries_per_index=settings.gke_index_retries,
        most_failed_indexes=settings.gke_max_failed_indexes,
    )
    if facts is None:
        return plan
    return replace(
        plan,
        cluster_location=facts.location,
        server_minor=facts.server_minor,
        autopilot=facts.autopilot,
        node_machine_type=node_machine(job.machine_type, facts, catalogue),
    )


def placed(job: JobPlan) -> JobPlan:
    """Return the plan with the one place that a standing cluster leaves: its own. Nothing there is a question of quota."""
    kubernetes = job.kubernetes
    if kubernetes is None or kubernetes.ephemeral:
        return job
    if kubernetes.cluster_location is None:
        return replace(job, walk=replace(job.walk, preflight=False))
    location = kubernetes.cluster_location
    zone = location if location.count("-") >= 2 else None
    region = location.rpartition("-")[0] if zone else location
    return replace(
        job, placements=(Placement(region=region, zone=zone),), walk=replace(job.walk, preflight=False)
    )

"""What a message would lead to, shown and not done: its plans, what they cost, and the exact requests of their first try.

Beside what this plane runs it shows jobs on Kubernetes, which can be planned already. Pure: it writes nothing and calls
nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from runtender import ids
from runtender.capacity.candidates import cluster_candidates
from runtender.capacity.demands import demands_of
from runtender.capacity.policy import policy_for
from runtender.engine.planning import Ground, plan_subject
from runtender.forecast.canonical import run_id_of
from runtender.forecast.config import parse_config
from runtender.forecast.cost import Estimate, total
from runtender.forecast.families import pool_families
from runtender.forecast.gke import GkePlan
from runtender.forecast.gke_run import plan_gke_run
from runtender.forecast.plan import costs
from runtender.forecast.selection import GKE_RUNTIMES, runtime_of, select_models
from runtender.forecast.validation import FieldReader
from runtender.model import (
    Deadlines,
    Job,
    JobPlan,
    Placement,
    Resource,
    ResourceKind,
    ResourceState,
    SubmitKind,
    SubmitRequest,
)
from runtender.runtimes import gke_ray
from runtender.runtimes.cluster import create_body
from runtender.runtimes.gce_vm import GceVm
from runtender.runtimes.gke_job import indexed_job
from runtender.runtimes.kube import Bearing
from runtender.settings import Settings

_COLLECTIONS: Mapping[str, str] = {
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
}
_KUBERNETES_ORDER = ("job", "head_service", "worker_deployment")


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """The plans of a message's families, on a VM or on Kubernetes, at the attempts they would be."""

    run_id: str
    on_vm: Mapping[str, JobPlan]
    on_kubernetes: Mapping[str, GkePlan]
    attempts: Mapping[str, int]


def preview(
    request: SubmitRequest, raw: Mapping[str, Any], ground: Ground, attempts: Mapping[str, int]
) -> Preview:
    """Plan every family where it is to run; raises `Rejected` with every reason why one cannot be planned."""
    if request.kind is SubmitKind.TASK:
        subject = plan_subject(request, raw, ground, attempts)
        return Preview(run_id=subject.run_id, on_vm=subject.families, on_kubernetes={}, attempts=attempts)
    config = parse_config(raw, ground.knowledge.catalogue)
    reader = FieldReader()
    families = pool_families(select_models(reader, config, request))
    reader.finish()
    kubernetes = tuple(family for family in families if runtime_of(config, family) in GKE_RUNTIMES)
    if not kubernetes:
        subject = plan_subject(request, raw, ground, attempts)
        return Preview(run_id=subject.run_id, on_vm=subject.families, on_kubernetes={}, attempts=attempts)
    others = tuple(family for family in families if family not in kubernetes)
    capacity = config.compute.capacity
    on_kubernetes = plan_gke_run(
        config,
        replace(request, families=kubernetes, overrides=_of(request, kubernetes)),
        ground.settings,
        placements=_zones(ground, config.compute.ray_regions or ()),
        walk=policy_for("gke", capacity.services.get("gke"), enabled=capacity.enabled),
        attempts=attempts,
        knowledge=ground.knowledge,
    )
    rest = replace(request, families=others, overrides=_of(request, others))
    on_vm = plan_subject(rest, raw, ground, attempts).families if others else {}
    return Preview(run_id=run_id_of(config), on_vm=on_vm, on_kubernetes=on_kubernetes, attempts=attempts)


def preview_document(shown: Preview, ground: Ground, now: datetime) -> dict[str, Any]:
    """Return a preview as JSON: one entry per job with placements, times, sizing, cost, quota and requests."""
    vms = costs(shown.on_vm, ground.settings, ground.knowledge)
    pods = costs(
        {family: plan.job for family, plan in shown.on_kubernetes.items()}, ground.settings, ground.knowledge
    )
    jobs = [
        *(_vm_entry(shown, family, plan, vms[family], ground, now) for family, plan in shown.on_vm.items()),
        *(
            _kubernetes_entry(shown, family, plan, pods[family], ground, now)
            for family, plan in shown.on_kubernetes.items()
        ),
    ]
    return {"run_id": shown.run_id, "cost": total({**vms, **pods}), "jobs": jobs}


def _of(request: SubmitRequest, families: Sequence[str]) -> dict[str, Any]:
    return {family: fields for family, fields in request.overrides.items() if family in families}


def _zones(ground: Ground, regions: Sequence[str]) -> tuple[Placement, ...]:
    settings = ground.settings
    return cluster_candidates(settings.region, settings.subnetwork_uri, ground.regions, regions)


def _vm_entry(
    shown: Preview, family: str, plan: JobPlan, cost: Estimate, ground: Ground, now: datetime
) -> dict[str, Any]:
    job, row = _first_try(shown, family, plan, ResourceKind.VM, plan.name, now)
    request = GceVm().create(job, row, ground.settings)
    call = _request(request.method_id, request.path, request.body or {}, query=dict(request.query))
    return {**_entry(job, plan, cost), "served": True, "requests": [call]}


def _kubernetes_entry(
    shown: Preview, family: str, plan: GkePlan, cost: Estimate, ground: Ground, now: datetime
) -> dict[str, Any]:
    job, row = _first_try(shown, family, plan.job, ResourceKind.JOB, plan.job.name, now)
    bearing = Bearing(plan=plan, job=job, row=row, settings=ground.settings)
    return {
        **_entry(job, plan.job, cost),
        "served": False,
        "cluster": {"name": plan.cluster_name, "own": plan.ephemeral_cluster, "mode": plan.gke_mode},
        "ray": plan.ray.to_json() if plan.ray else None,
        "requests": [*_cluster_requests(bearing, ground.settings), *_object_requests(bearing)],
    }


def _entry(job: Job, plan: JobPlan, cost: Estimate) -> dict[str, Any]:
    times = {
        "capacity_wait": plan.capacity_wait,
        "run_limit": plan.run_limit,
        "machine_life": plan.max_run_duration,
    }
    return {
        "family": job.family,
        "job_key": job.job_key,
        "runtime": plan.runtime,
        "name": plan.name,
        "models": list(plan.models),
        "machine_type": plan.machine_type,
        "accelerators": f"{plan.accelerator_count} x {plan.accelerator_type}"
        if plan.accelerator_count
        else "",
        "spot": plan.spot,
        "workers": plan.worker_count,
        "placements": [place.label for place in plan.placements],
        "seconds": {name: span / timedelta(seconds=1) for name, span in times.items()},
        "sizing": plan.resource_plan,
        "quota": {demand.meter.name: demand.amount(demand.max_units) for demand in demands_of(plan)},
        "cost": cost.to_json(),
    }


def _first_try(
    shown: Preview, family: str, plan: JobPlan, kind: ResourceKind, name: str, now: datetime
) -> tuple[Job, Resource]:
    """Return job and row as the plane would save them before its first call: names and nonces follow from the job."""
    attempt = shown.attempts.get(family, 1)
    key = ids.job_key(shown.run_id, family, attempt)
    job = Job(
        job_key=key,
        key=ids.key_digest(key),
        run_id=shown.run_id,
        family=family,
        attempt=attempt,
        runtime=plan.runtime,
        plan=plan,
        deadlines=Deadlines(capacity=now + plan.capacity_wait),
        accepted_at=now,
        wake_at=now,
    )
    row = Resource(
        kind=kind,
        name=name,
        location=plan.placements[0].location,
        placement=0,
        try_number=0,
        nonce=ids.nonce(key, 0, 0),
        request_id=ids.request_uuid(key, attempt, 0, 0),
        state=ResourceState.INTENDED,
        since=now,
    )
    return job, row


def _cluster_requests(bearing: Bearing, settings: Settings) -> Iterator[dict[str, Any]]:
    if not bearing.plan.ephemeral_cluster:
        return
    row = replace(bearing.row, kind=ResourceKind.CLUSTER, name=bearing.plan.cluster_name)
    body = create_body(bearing.plan, bearing.job, row, settings)
    path = f"/v1/projects/{settings.project}/locations/{row.location}/clusters"
    yield _request("container.projects.locations.clusters.create", path, body)


def _object_requests(bearing: Bearing) -> Iterator[dict[str, Any]]:
    if bearing.plan.gke_mode == "job":
        bodies = [indexed_job(bearing)]
    else:
        made = gke_ray.bodies(bearing)
        bodies = [body for name in _KUBERNETES_ORDER if (body := made[name]) is not None]
    for body in bodies:
        path = _COLLECTIONS[body["kind"]].format(namespace=bearing.plan.namespace)
        yield _request(f"kubernetes.{body['kind']}.create", path, body)


def _request(
    method_id: str, path: str, body: Mapping[str, Any], query: Mapping[str, str] | None = None
) -> dict[str, Any]:
    return {"method_id": method_id, "verb": "POST", "path": path, "query": dict(query or {}), "body": body}

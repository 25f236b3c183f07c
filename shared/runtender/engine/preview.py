"""What a message would lead to, shown and not done: its plans, what they cost, and the exact requests of their first try.

Beside what this plane runs it shows Ray and clusters of a job's own, which can be planned already. Pure: it writes nothing
and calls nobody; what quota there is has been read by whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from runtender import ids
from runtender.capacity.quota import Readings
from runtender.engine.planning import Ground, Subject
from runtender.engine.quota import quota_document
from runtender.forecast.cost import Estimate, total
from runtender.forecast.gke import ray_json
from runtender.forecast.plan import costs
from runtender.model import Deadlines, Job, JobPlan, KubernetesPlan, Resource, ResourceKind, ResourceState
from runtender.runtimes import gke_ray
from runtender.runtimes.cluster import create_body
from runtender.runtimes.gce_vm import GceVm
from runtender.runtimes.gke_job import GkeJob
from runtender.runtimes.kube import Bearing
from runtender.settings import Settings

_COLLECTIONS: Mapping[str, str] = {
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
}
_KUBERNETES_ORDER = ("job", "head_service", "worker_deployment")


def preview_document(
    subject: Subject,
    ground: Ground,
    attempts: Mapping[str, int],
    quota: Mapping[str, Readings],
    now: datetime,
) -> dict[str, Any]:
    """Return what a message's plans would lead to as JSON: placements, times, sizing, cost, quota and requests of each job.

    `quota` has what was read of the meters of their regions; what is missing is not known.
    """
    costs_of = costs(subject.families, ground.settings, ground.knowledge)
    jobs = []
    for family, plan in subject.families.items():
        job, row = _first_try(subject.run_id, family, attempts.get(family, 1), plan, now)
        entry = _entry(job, plan, costs_of[family])
        jobs.append({**entry, "quota": quota_document(plan, quota), **_requests(job, row, ground.settings)})
    return {"run_id": subject.run_id, "cost": total(costs_of), "jobs": jobs}


def _requests(job: Job, row: Resource, settings: Settings) -> dict[str, Any]:
    """Return what would be sent first, and whether this plane would send it."""
    kubernetes = job.plan.kubernetes
    if kubernetes is None:
        request = GceVm().create(job, row, settings)
        call = _request(request.method_id, request.path, request.body or {}, query=dict(request.query))
        return {"served": True, "requests": [call]}
    bearing = Bearing(job=job, row=row, settings=settings)
    return {
        "served": kubernetes.mode == "job" and not kubernetes.ephemeral,
        "cluster": {
            "name": kubernetes.cluster_name,
            "own": kubernetes.ephemeral,
            "mode": kubernetes.mode,
        },
        "ray": ray_json(kubernetes.ray) if kubernetes.ray else None,
        "requests": [*_cluster_requests(bearing, kubernetes), *_object_requests(bearing, kubernetes)],
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
        "cost": cost.to_json(),
    }


def _first_try(run_id: str, family: str, attempt: int, plan: JobPlan, now: datetime) -> tuple[Job, Resource]:
    """Return job and row as the plane would save them before its first call: names and nonces follow from the job."""
    key = ids.job_key(run_id, family, attempt)
    job = Job(
        job_key=key,
        key=ids.key_digest(key),
        run_id=run_id,
        family=family,
        attempt=attempt,
        runtime=plan.runtime,
        plan=plan,
        deadlines=Deadlines(capacity=now + plan.capacity_wait),
        accepted_at=now,
        wake_at=now,
    )
    row = Resource(
        kind=ResourceKind.JOB if plan.kubernetes else ResourceKind.VM,
        name=plan.name,
        location=plan.placements[0].location,
        placement=0,
        try_number=0,
        nonce=ids.nonce(key, 0, 0),
        request_id=ids.request_uuid(key, attempt, 0, 0),
        state=ResourceState.INTENDED,
        since=now,
    )
    return job, row


def _cluster_requests(bearing: Bearing, kubernetes: KubernetesPlan) -> Iterator[dict[str, Any]]:
    if not kubernetes.ephemeral:
        return
    row = replace(bearing.row, kind=ResourceKind.CLUSTER, name=kubernetes.cluster_name)
    body = create_body(bearing.job, row, bearing.settings)
    path = f"/v1/projects/{bearing.settings.project}/locations/{row.location}/clusters"
    yield _request("container.projects.locations.clusters.create", path, body)


def _object_requests(bearing: Bearing, kubernetes: KubernetesPlan) -> Iterator[dict[str, Any]]:
    if kubernetes.mode == "job":
        request = GkeJob().create(bearing.job, bearing.row, bearing.settings)
        yield _request(request.method_id, request.path, request.body or {}, query=dict(request.query))
        return
    made = gke_ray.bodies(bearing)
    for body in (body for name in _KUBERNETES_ORDER if (body := made[name]) is not None):
        path = _COLLECTIONS[body["kind"]].format(namespace=kubernetes.namespace)
        yield _request(f"kubernetes.{body['kind']}.create", path, body)


def _request(
    method_id: str, path: str, body: Mapping[str, Any], query: Mapping[str, str] | None = None
) -> dict[str, Any]:
    return {"method_id": method_id, "verb": "POST", "path": path, "query": dict(query or {}), "body": body}

"""What every object on Kubernetes shares: labels, the environment of a worker, its container, and the pod around it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from runtender import ids
from runtender.forecast.sizing import thread_caps
from runtender.model import Job, JobPlan, KubernetesPlan, Resource, ResourceKind, SubmitKind
from runtender.runtimes.pod_shape import node_selector, resources, shared_memory_bytes, tolerations
from runtender.settings import Settings
from runtender.worker.secret_names import secret_version
from runtender.worker.source import index_source, secrets_source

Body = dict[str, Any]

RUNTIME = "gke"
PYTHON = "/opt/venv/bin/python"
APP = "scale-forecasting"
JOB_TTL_S = 3600
"""A finished Job is kept this long, so that its state can be read after an event was lost."""

SECURITY: Mapping[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What a container may do: nothing that a program which reads and writes objects needs no leave for."""

# A Spot node leaves its pods 15 s; longer graces are cut.
_SPOT_GRACE_S = 15
_POD_UID = "SF_POD_UID"
# A dollar that Kubernetes would take for the beginning of something.
_EXPANDED = re.compile(r"\$(?=[$(])")
_KEPT_IN_PLACE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bearing:
    """One try of a job on Kubernetes: the job, the row it stands for, and the plane's settings."""

    job: Job
    row: Resource
    settings: Settings

    @property
    def plan(self) -> JobPlan:
        """The job's plan, with the machine of the row's placement."""
        return self.job.plan.at(self.job.placement_of(self.row))

    @property
    def kubernetes(self) -> KubernetesPlan:
        """What the plan says of Kubernetes; raises ValueError for a job that was not planned for it."""
        kubernetes = self.job.plan.kubernetes
        if kubernetes is None:
            raise ValueError(f"job {self.job.job_key!r} was not planned for Kubernetes")
        return kubernetes

    @property
    def name(self) -> str:
        """The Job's name, from which its companions' names are made."""
        return self.job.plan.name


def metadata(bearing: Bearing, name: str, kind: ResourceKind, role: str = "") -> Body:
    """Return an object's metadata."""
    return {"name": name, "namespace": bearing.kubernetes.namespace, "labels": labels(bearing, kind, role)}


def labels(bearing: Bearing, kind: ResourceKind, role: str = "") -> dict[str, str]:
    """Return the labels by which an object is known as this plane's, this job's and this try's. Ours win."""
    job, row = bearing.job, bearing.row
    given = {name: ids.label_value(value) for name, value in job.plan.labels.items()}
    return {
        **given,
        "app": APP,
        "managed-by": APP,
        "run_id": ids.label_value(job.run_id),
        "runtime": RUNTIME,
        "sf-job": bearing.name,
        "sf-mode": bearing.kubernetes.mode,
        "sf-plane": bearing.settings.plane_id,
        "sf-kind": kind.value,
        "sf-key": job.key,
        "sf-nonce": row.nonce,
        "sf-attempt": str(job.attempt),
        "sf-placement": str(row.placement),
        **({"sf-ray-role": role} if role else {}),
    }


def environment(bearing: Bearing, more: Mapping[str, str]) -> list[Body]:
    """Return the worker's environment; `more` is the mode's own. A plan may set what is not said here."""
    job, plan, settings = bearing.job, bearing.plan, bearing.settings
    told = {
        # Absent means a CPU to whoever reads it.
        **({"SF_PROVISIONED_HARDWARE": plan.hardware} if plan.hardware == "gpu" else {}),
        "SF_VM_RUNTIME": RUNTIME,
        "JOB_COMPLETION_TOTAL": str(plan.worker_count),
        "SF_VERTEX_JOB_ID": plan.name,
        "PYTHONUNBUFFERED": "1",
        **_deployment(settings),
        **thread_caps(plan.slot_cores),
        "SF_RUN_ID": job.run_id,
        "SF_JOB_KEY": job.job_key,
        "SF_NONCE": bearing.row.nonce,
        "SF_ATTEMPT": str(job.attempt),
        "SF_PLACEMENT": str(bearing.row.placement),
        "SF_STATUS_BUCKET": plan.status_bucket,
        "SF_CELLS_URI": f"{plan.cells_uri}/{bearing.row.nonce}",
        "SF_LOGS_URI": f"{plan.logs_uri}/{bearing.row.nonce}",
        **more,
    }
    own = {name: plan.env[name] for name in sorted(plan.env) if name not in {*told, _POD_UID}}
    pod_uid: Body = {"name": _POD_UID, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
    return [*({"name": name, "value": _verbatim(value)} for name, value in (told | own).items()), pod_uid]


def worker_command(bearing: Bearing) -> tuple[list[str], list[str]]:
    """Return command and arguments of a worker: a task its own, a forecast the bootstrap of an index with the driver's."""
    plan = bearing.plan
    if plan.kind is SubmitKind.TASK:
        return [*_secrets_first(plan), *plan.command], list(plan.args)
    return [PYTHON, "-c", index_source()], package_arguments(bearing)


def _secrets_first(plan: JobPlan) -> list[str]:
    """Return what reads the secrets that a task names before its command runs; nothing where it names none."""
    return [PYTHON, "-c", secrets_source()] if any(map(secret_version, plan.env.values())) else []


def package_arguments(bearing: Bearing) -> list[str]:
    """Return the arguments of a bootstrap: the package, the entry point, and what is the entry point's own."""
    plan = bearing.plan
    entrypoint = ["--entrypoint", plan.entrypoint] if plan.entrypoint else []
    return ["--package-uri", plan.package_uri, *entrypoint, *plan.driver_args]


def container(
    bearing: Bearing, name: str, command: Sequence[str], args: Sequence[str], env: Sequence[Body]
) -> Body:
    """Return a worker's container. It asks for so much of a node that exactly one fits on it."""
    body: Body = {
        "name": name,
        "image": bearing.plan.image_uri,
        "env": list(env),
        "resources": resources(bearing.plan, bearing.kubernetes),
        "securityContext": SECURITY,
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],  # noqa: S108 - where libraries look for it
    }
    # Empty is not the image's own: it would replace the entry point by nothing.
    words = (("command", command), ("args", args))
    return body | {key: [_verbatim(word) for word in value] for key, value in words if value}


def pod_template(bearing: Bearing, one: Body, kind: ResourceKind, role: str = "") -> Body:
    """Return the template of a pod that runs one container, once."""
    spec = {
        **pod_spec(bearing, one),
        "restartPolicy": "Never",
        "activeDeadlineSeconds": whole_seconds(bearing.kubernetes.pod_deadline),
    }
    return {"metadata": pod_metadata(bearing, kind, role), "spec": spec}


def pod_metadata(bearing: Bearing, kind: ResourceKind, role: str = "") -> Body:
    """Return a pod template's metadata: a pod that is at work is not moved to make room."""
    known: Body = {"labels": labels(bearing, kind, role)}
    if bearing.kubernetes.autopilot and bearing.plan.spot:
        # An Autopilot keeps no Spot pod in place, and refuses one that asks for it.
        return known
    return known | {"annotations": {_KEPT_IN_PLACE: "false"}}


def pod_spec(bearing: Bearing, one: Body) -> Body:
    """Return what all pods' specs share."""
    plan, kubernetes = bearing.plan, bearing.kubernetes
    # What lies in it counts as the container's memory: without a limit it could end the pod.
    memory = {"medium": "Memory", "sizeLimit": str(shared_memory_bytes(plan, kubernetes))}
    spec: Body = {
        # The workers do not talk to Kubernetes; who they are elsewhere the node's metadata server says.
        "automountServiceAccountToken": False,
        "volumes": [{"name": "dshm", "emptyDir": memory}],
        "containers": [one],
    }
    if kubernetes.service_account_name:
        spec["serviceAccountName"] = kubernetes.service_account_name
    if taints := tolerations(plan, kubernetes):
        spec["tolerations"] = taints
    if selector := node_selector(plan, kubernetes):
        spec["nodeSelector"] = selector
    if plan.spot:
        spec["terminationGracePeriodSeconds"] = _SPOT_GRACE_S
    return spec


def whole_seconds(span: timedelta) -> int:
    """Return a span in the whole seconds that Kubernetes counts in."""
    return max(1, math.ceil(span.total_seconds()))


def _verbatim(text: str) -> str:
    """Return a word that Kubernetes hands on as `text`: it takes `$(NAME)` for a variable, and `$$` for `$`."""
    return _EXPANDED.sub("$$", text)


def _deployment(settings: Settings) -> Mapping[str, str]:
    named = {
        "SF_PROJECT_ID": settings.project,
        "SF_DATASET_ID": settings.dataset_id,
        "SF_REGISTRY_DATASET_ID": settings.registry_dataset_id,
        "SF_CONNECTION": settings.connection,
        "SF_WAREHOUSE_URI": settings.warehouse_uri,
        "SF_REGION": settings.region,
    }
    return {name: value for name, value in named.items() if value}

"""The runtime `gke` in mode `ray`: a driver that is the head of a Ray cluster, and the nodes that join it.

Two ways to have the nodes: a Service and a Deployment of our own, which any cluster can run, or one RayCluster, where
KubeRay is installed. The Deployment and the Service name the driver's Job as their owner: when it goes, they go.
"""

from __future__ import annotations

from typing import Any

from runtender import ids
from runtender.model import RayNodes, ResourceKind
from runtender.runtimes.kube import (
    JOB_TTL_S,
    PYTHON,
    SECURITY,
    Bearing,
    Body,
    container,
    environment,
    metadata,
    package_arguments,
    pod_metadata,
    pod_spec,
    pod_template,
    whole_seconds,
)
from runtender.worker.source import ray_source

GCS_PORT = 6379
RAY_VERSION = "2.59.0"

_HEAD, _WORKER = "head", "worker"
_DRIVER = "ray-driver"
_PACKAGE = "package"
_PACKAGE_FOLDER = "/opt/package"


def head_name(bearing: Bearing) -> str:
    """Return the name of the Service by which nodes find the head."""
    return f"{bearing.name}-head"


def workers_name(bearing: Bearing) -> str:
    """Return the name of the Deployment of nodes."""
    return f"{bearing.name}-workers"


def driver_job(bearing: Bearing) -> Body:
    """Return the Job whose one pod is the head and runs the driver."""
    expected = {"SF_RAY_EXPECTED_NODES": str(bearing.plan.worker_count)}
    driver = container(
        bearing,
        _DRIVER,
        [PYTHON, "-c", ray_source(), "driver"],
        package_arguments(bearing),
        environment(bearing, expected),
    )
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(bearing, bearing.name, ResourceKind.JOB, _HEAD),
        "spec": {
            "completions": 1,
            "parallelism": 1,
            # A head that was lost has taken the whole cluster's state along: nothing to go on from.
            "backoffLimit": 0,
            "activeDeadlineSeconds": whole_seconds(bearing.kubernetes.job_deadline),
            "ttlSecondsAfterFinished": JOB_TTL_S,
            "template": pod_template(bearing, driver, ResourceKind.JOB, _HEAD),
        },
    }


def head_service(bearing: Bearing, *, owner_uid: str = "") -> Body | None:
    """Return the Service of the head; None where there is nobody to look for it."""
    if bearing.plan.worker_count <= 1:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _owned(bearing, head_name(bearing), ResourceKind.SERVICE, _HEAD, owner_uid),
        "spec": {
            "clusterIP": "None",
            "selector": {"sf-job": bearing.name, "sf-ray-role": _HEAD},
            "ports": [{"name": "gcs", "port": GCS_PORT, "targetPort": GCS_PORT}],
        },
    }


def worker_deployment(bearing: Bearing, *, owner_uid: str = "") -> Body | None:
    """Return the Deployment of the nodes beside the head; None where there are none."""
    workers = bearing.plan.worker_count
    if workers <= 1:
        return None
    told = {
        "SF_PACKAGE_URI": bearing.plan.package_uri,
        "SF_RAY_HEAD_ADDRESS": f"{head_name(bearing)}:{GCS_PORT}",
    }
    node = container(
        bearing, "ray-worker", [PYTHON, "-c", ray_source(), "node"], [], environment(bearing, told)
    )
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _owned(bearing, workers_name(bearing), ResourceKind.DEPLOYMENT, _WORKER, owner_uid),
        "spec": {
            "replicas": workers - 1,
            "selector": {"matchLabels": {"sf-job": bearing.name, "sf-ray-role": _WORKER}},
            "template": {
                "metadata": pod_metadata(bearing, ResourceKind.DEPLOYMENT, _WORKER),
                "spec": pod_spec(bearing, node),
            },
        },
    }


def ray_cluster(bearing: Bearing) -> Body:
    """Return the same cluster as one RayCluster, for KubeRay. Its name has at most 53 characters.

    KubeRay writes the commands that start Ray; an init container unpacks the run's code where all of Ray's processes
    import from.
    """
    plan = bearing.plan
    pool = _pool(bearing)
    replicas = max(0, plan.worker_count - 1)
    most = max(replicas, plan.worker_count, pool.most_nodes if pool else 0)
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": metadata(bearing, ids.ray_cluster_name(bearing.job.job_key), ResourceKind.RAYCLUSTER),
        "spec": {
            "rayVersion": RAY_VERSION,
            "enableInTreeAutoscaling": bool(pool and pool.most_nodes > pool.node_count),
            "headGroupSpec": {
                "rayStartParams": {
                    "port": str(GCS_PORT),
                    "dashboard-host": "0.0.0.0",  # noqa: S104 - inside the pod's own network
                    "disable-usage-stats": "true",
                },
                "template": _ray_template(bearing, "ray-head", _HEAD),
            },
            "workerGroupSpecs": [
                {
                    "groupName": "default-group",
                    "replicas": replicas,
                    "minReplicas": replicas,
                    "maxReplicas": most,
                    "rayStartParams": {"disable-usage-stats": "true"},
                    "template": _ray_template(bearing, "ray-worker", _WORKER),
                }
            ],
        },
    }


def bodies(bearing: Bearing) -> dict[str, Body | None]:
    """Return every object of a plan in mode `ray`, by what it is. A head alone needs no Service and no Deployment."""
    return {
        "job": driver_job(bearing),
        "head_service": head_service(bearing),
        "worker_deployment": worker_deployment(bearing),
        "kuberay_cluster": ray_cluster(bearing),
    }


def _pool(bearing: Bearing) -> RayNodes | None:
    ray = bearing.kubernetes.ray
    if ray is None:
        return None
    return ray.gpu if bearing.plan.hardware == "gpu" else ray.cpu


def _owned(bearing: Bearing, name: str, kind: ResourceKind, role: str, owner_uid: str) -> Body:
    about = metadata(bearing, name, kind, role)
    if owner_uid:
        owner: dict[str, Any] = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": bearing.name,
            "uid": owner_uid,
        }
        about["ownerReferences"] = [owner]
    return about


def _ray_template(bearing: Bearing, name: str, role: str) -> Body:
    one = container(bearing, name, [], [], environment(bearing, {"PYTHONPATH": _PACKAGE_FOLDER}))
    mount = {"name": _PACKAGE, "mountPath": _PACKAGE_FOLDER}
    one["volumeMounts"] = [*one["volumeMounts"], mount]
    spec = pod_spec(bearing, one)
    package = ["--package-uri", bearing.plan.package_uri, "--folder", _PACKAGE_FOLDER]
    spec["initContainers"] = [
        {
            "name": "stage",
            "image": bearing.plan.image_uri,
            "command": [PYTHON, "-c", ray_source(), "stage"],
            "args": package,
            "env": environment(bearing, {}),
            "securityContext": SECURITY,
            "volumeMounts": [mount],
        }
    ]
    spec["volumes"] = [*spec["volumes"], {"name": _PACKAGE, "emptyDir": {}}]
    return {"metadata": pod_metadata(bearing, ResourceKind.RAYCLUSTER, role), "spec": spec}

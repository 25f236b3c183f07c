"""What the API server fills in where an object leaves it open, so that clients read back what really holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runtender.local.kubernetes.documents import Document, name_of, uid_of
from runtender.local.kubernetes.namespaces import complete_namespace

NO_LIMIT = 2_147_483_647
"""The `backoffLimit` of a Job whose indexes have limits of their own."""

_POD: Mapping[str, Any] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "enableServiceLinks": True,
}
_CONTAINER: Mapping[str, Any] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_GATED = {
    "podFailurePolicy": 31,
    "backoffLimitPerIndex": 33,
    "maxFailedIndexes": 33,
    "podReplacementPolicy": 34,
}
"""From which version 1.x on a Job's field needs no feature gate; before, it is taken and dropped, as with the gate off."""


def fill(resource: str, document: Document, minor: int) -> None:
    """Fill an object's open fields, at first and after every change. It has its UID by now."""
    filler = _FILLERS.get(resource)
    if filler is not None:
        filler(document, minor)


def fill_pod_spec(spec: Document) -> None:
    """Fill the open fields of a pod's spec, or of a template's."""
    for name, value in _POD.items():
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    if account := spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", account)
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        for name, value in _CONTAINER.items():
            container.setdefault(name, value)
        image = container.get("image", "")
        latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
        container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
        container.setdefault("resources", {})
        _copy_limits(container["resources"])


def _drop_gated(document: Document, minor: int) -> None:
    """Take off a Job what its server does not know yet."""
    for name, since in _GATED.items():
        if minor < since:
            document["spec"].pop(name, None)


def _copy_limits(resources: Document) -> None:
    """A limit without a request is the request as well."""
    limits = resources.get("limits") or {}
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _fill_pod(pod: Document, _minor: int) -> None:
    fill_pod_spec(pod["spec"])


def _fill_job(job: Document, minor: int) -> None:
    _drop_gated(job, minor)
    spec = job["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("backoffLimit", NO_LIMIT if "backoffLimitPerIndex" in spec else 6)
    if minor >= _GATED["podReplacementPolicy"]:
        policy = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
        spec.setdefault("podReplacementPolicy", policy)
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern.setdefault("status", "True")
    _label_template(job)
    fill_pod_spec(spec["template"]["spec"])
    job.setdefault("status", {})


def _label_template(job: Document) -> None:
    """Let a Job know its pods by its UID, unless it brings a selector of its own."""
    spec = job["spec"]
    template = spec["template"]
    metadata = template.setdefault("metadata", {})
    if spec["manualSelector"] or "selector" in spec:
        return
    own = {
        "batch.kubernetes.io/controller-uid": uid_of(job),
        "batch.kubernetes.io/job-name": name_of(job),
        "controller-uid": uid_of(job),
        "job-name": name_of(job),
    }
    metadata["labels"] = {**(metadata.get("labels") or {}), **own}
    metadata.setdefault("creationTimestamp", None)
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid_of(job)}}


def _fill_deployment(deployment: Document, _minor: int) -> None:
    spec = deployment["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    spec.setdefault("strategy", rolling)
    fill_pod_spec(spec["template"]["spec"])
    deployment.setdefault("status", {})


def _fill_service(service: Document, _minor: int) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    spec.setdefault("clusterIP", "10.8.0.10")
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])
    service.setdefault("status", {"loadBalancer": {}})


def _fill_namespace(namespace: Document, _minor: int) -> None:
    complete_namespace(namespace)


def _fill_secret(secret: Document, _minor: int) -> None:
    secret.setdefault("type", "Opaque")


_FILLERS: Mapping[str, Callable[[Document, int], None]] = {
    "pods": _fill_pod,
    "jobs": _fill_job,
    "deployments": _fill_deployment,
    "services": _fill_service,
    "namespaces": _fill_namespace,
    "secrets": _fill_secret,
}

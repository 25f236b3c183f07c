"""Objects as the rows that `kubectl get` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from runtender.local.kubernetes.documents import (
    Document,
    holds,
    is_ending,
    metadata_of,
    moment_of,
    name_of,
)
from runtender.local.kubernetes.pods import phase_of

Row = Callable[[Document, datetime], tuple[object, ...]]


def wants_table(accept: str) -> bool:
    """True for a client that would rather have a table than objects."""
    return "as=Table" in accept.partition(",")[0]


def table(resource: str, documents: Iterable[Document], now: datetime, *, version: str) -> dict[str, Any]:
    """Return objects as a table. Each row carries the object's metadata, as kubectl needs it."""
    columns, row = _TABLES.get(resource, _PLAIN)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version},
        "columnDefinitions": [
            {
                "name": name,
                "type": "string",
                "format": "name" if name == "Name" else "",
                "description": "",
                "priority": 0,
            }
            for name in columns
        ],
        "rows": [
            {
                "cells": [*row(document, now)],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": metadata_of(document),
                },
            }
            for document in documents
        ],
    }


def _plain(document: Document, now: datetime) -> tuple[object, ...]:
    return name_of(document), _age(document, now)


def _pod(pod: Document, now: datetime) -> tuple[object, ...]:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    ready = sum(1 for status in statuses if status["ready"])
    restarts = sum(status["restartCount"] for status in statuses)
    total = len(pod["spec"]["containers"])
    return name_of(pod), f"{ready}/{total}", _pod_word(pod), str(restarts), _age(pod, now)


def _pod_word(pod: Document) -> str:
    """Return the one word that says most about a pod."""
    if is_ending(pod):
        return "Terminating"
    if reason := pod.get("status", {}).get("reason"):
        return str(reason)
    for status in pod.get("status", {}).get("containerStatuses") or ():
        for kind in ("waiting", "terminated"):
            if reason := status["state"].get(kind, {}).get("reason"):
                return str(reason)
    return phase_of(pod)


def _job(job: Document, now: datetime) -> tuple[object, ...]:
    status, spec = job.get("status", {}), job["spec"]
    wanted = spec.get("completions") or "1"
    started = status.get("startTime")
    ended = status.get("completionTime")
    took = _span(moment_of(started), moment_of(ended) if ended else now) if started else ""
    return name_of(job), _job_word(job), f"{status.get('succeeded', 0)}/{wanted}", took, _age(job, now)


def _job_word(job: Document) -> str:
    if is_ending(job):
        return "Terminating"
    return next((kind for kind in ("Complete", "Failed", "Suspended") if holds(job, kind)), "Running")


def _deployment(deployment: Document, now: datetime) -> tuple[object, ...]:
    status = deployment.get("status", {})
    ready = f"{status.get('readyReplicas', 0)}/{deployment['spec']['replicas']}"
    up, there = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    return name_of(deployment), ready, str(up), str(there), _age(deployment, now)


def _node(node: Document, now: datetime) -> tuple[object, ...]:
    ready = "Ready" if holds(node, "Ready") else "NotReady"
    return name_of(node), ready, "<none>", _age(node, now), node["status"]["nodeInfo"]["kubeletVersion"]


def _namespace(namespace: Document, now: datetime) -> tuple[object, ...]:
    return name_of(namespace), namespace["status"]["phase"], _age(namespace, now)


def _event(event: Document, now: datetime) -> tuple[object, ...]:
    about = event["involvedObject"]
    seen = event.get("lastTimestamp")
    return (
        _span(moment_of(seen), now) if seen else "<unknown>",
        event.get("type", ""),
        event.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        event.get("message", ""),
    )


def _age(document: Document, now: datetime) -> str:
    return _span(moment_of(metadata_of(document)["creationTimestamp"]), now)


def _span(since: datetime, until: datetime) -> str:
    seconds = max(0, int((until - since).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


_PLAIN: tuple[tuple[str, ...], Row] = (("Name", "Age"), _plain)
_TABLES: Mapping[str, tuple[tuple[str, ...], Row]] = {
    "deployments": (("Name", "Ready", "Up-to-date", "Available", "Age"), _deployment),
    "events": (("Last Seen", "Type", "Reason", "Object", "Message"), _event),
    "jobs": (("Name", "Status", "Completions", "Duration", "Age"), _job),
    "namespaces": (("Name", "Status", "Age"), _namespace),
    "nodes": (("Name", "Status", "Roles", "Age", "Version"), _node),
    "pods": (("Name", "Ready", "Status", "Restarts", "Age"), _pod),
}

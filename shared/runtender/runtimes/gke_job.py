"""The runtime `gke` in mode `job`: an Indexed Job with one pod per worker. Bodies of its objects, and what a Job's state
means.

A pod that Kubernetes itself takes away (an upgrade, a preemption, an eviction) is replaced and not counted; one that
ends with an exit code fails its index, and the others go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from runtender.model import ResourceKind
from runtender.runtimes.kube import (
    JOB_TTL_S,
    Bearing,
    Body,
    container,
    environment,
    metadata,
    pod_template,
    whole_seconds,
    worker_command,
)

CONTAINER = "worker"
NEWEST_MINOR = 34
"""The Kubernetes version 1.x from which on a Job has every field that is used here."""

# From these versions on the fields need no feature gate.
_POD_FAILURE_POLICY, _BACKOFF_PER_INDEX, _POD_REPLACEMENT = 31, 33, 34


class JobState(StrEnum):
    """What a look at a Job says."""

    NOT_FOUND = "NOT_FOUND"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


def indexed_job(bearing: Bearing, *, server_minor: int = NEWEST_MINOR) -> Body:
    """Return the Job of a plan in mode `job`, with the fields that a server of version 1.`server_minor` knows."""
    command, args = worker_command(bearing)
    worker = container(bearing, CONTAINER, command, args, environment(bearing, {}))
    workers = bearing.plan.job.worker_count
    spec: Body = {
        "completions": workers,
        "parallelism": workers,
        "completionMode": "Indexed",
        "activeDeadlineSeconds": whole_seconds(bearing.plan.job_deadline),
        "ttlSecondsAfterFinished": JOB_TTL_S,
        **failure_policy(CONTAINER, server_minor, indexed=True),
        "template": pod_template(bearing, worker, ResourceKind.JOB),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(bearing, bearing.name, ResourceKind.JOB),
        "spec": spec,
    }


def failure_policy(container_name: str, server_minor: int, *, indexed: bool) -> Body:
    """Return how a Job takes the loss of a pod.

    `backoffLimit` is left out where each index has its own: it would fail the whole Job at the first counted loss.
    """
    fields: Body = {}
    if indexed and server_minor >= _BACKOFF_PER_INDEX:
        fields["backoffLimitPerIndex"] = 0
    else:
        fields["backoffLimit"] = 0
    if server_minor >= _POD_FAILURE_POLICY:
        action = "FailIndex" if "backoffLimitPerIndex" in fields else "FailJob"
        exited = {"containerName": container_name, "operator": "NotIn", "values": [0]}
        fields["podFailurePolicy"] = {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": action, "onExitCodes": exited},
            ]
        }
    if server_minor >= _POD_REPLACEMENT:
        # Never two pods for one index: the next starts when the last one has ended.
        fields["podReplacementPolicy"] = "Failed"
    return fields


def classify_job(job: Mapping[str, Any] | None) -> tuple[JobState, str]:
    """Return a Job's state and a word on it. A failed pod counts only once none is active."""
    if job is None:
        return JobState.NOT_FOUND, "Kubernetes Job not found"
    status = job.get("status") or {}
    completions = (job.get("spec") or {}).get("completions") or 1
    active, succeeded, failed = (status.get(name) or 0 for name in ("active", "succeeded", "failed"))
    for condition in status.get("conditions") or ():
        if condition.get("status") != "True":
            continue
        if condition.get("type") == "Complete":
            return JobState.SUCCEEDED, f"succeeded={succeeded}/{completions}"
        if condition.get("type") == "Failed":
            words = f"{condition.get('reason') or 'JobFailed'}: {condition.get('message') or ''}"
            return JobState.FAILED, words.strip(": ")
    if succeeded >= completions:
        return JobState.SUCCEEDED, f"succeeded={succeeded}/{completions}"
    if failed > 0 and not active:
        return JobState.FAILED, f"failed={failed} active=0"
    return JobState.RUNNING, f"active={active} succeeded={succeeded}/{completions}"

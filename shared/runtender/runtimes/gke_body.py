"""The body of an Indexed Job: one pod per worker, and how the Job takes the loss of one.

A pod that Kubernetes itself takes away (an upgrade, a preemption, an eviction) is replaced and not counted; one that
ends with an exit code fails its index, unless the plan has repeats left for it, and the others go on.
"""

from __future__ import annotations

from runtender.model import KubernetesPlan, ResourceKind
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
"""The name of a pod's one container."""

# From these versions 1.x on the fields need no feature gate.
_POD_FAILURE_POLICY, _BACKOFF_PER_INDEX, _POD_REPLACEMENT = 31, 33, 34


def indexed_job(bearing: Bearing) -> Body:
    """Return the Job of a plan in mode `job`, with the fields that the cluster's version knows."""
    kubernetes, workers = bearing.kubernetes, bearing.plan.worker_count
    command, args = worker_command(bearing)
    told = {"SF_INDEX_RETRIES": str(kubernetes.retries_per_index)}
    worker = container(bearing, CONTAINER, command, args, environment(bearing, told))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(bearing, bearing.name, ResourceKind.JOB),
        "spec": {
            "completions": workers,
            "parallelism": workers,
            "completionMode": "Indexed",
            "activeDeadlineSeconds": whole_seconds(kubernetes.job_deadline),
            "ttlSecondsAfterFinished": JOB_TTL_S,
            **_backoff(kubernetes, workers),
            **_failure_policy(kubernetes),
            "template": pod_template(bearing, worker, ResourceKind.JOB),
        },
    }


def _backoff(kubernetes: KubernetesPlan, workers: int) -> Body:
    """Return how many failures are made good.

    `backoffLimit` is left out where each index has its own: it would fail the whole Job at the first counted loss.
    """
    if kubernetes.server_minor < _BACKOFF_PER_INDEX:
        return {"backoffLimit": kubernetes.retries_per_index * workers}
    fields: Body = {"backoffLimitPerIndex": kubernetes.retries_per_index}
    if kubernetes.most_failed_indexes is not None:
        fields["maxFailedIndexes"] = min(kubernetes.most_failed_indexes, workers)
    return fields


def _failure_policy(kubernetes: KubernetesPlan) -> Body:
    """Return which failures count: none that is a disruption, and an exit code for good where nothing is repeated."""
    if kubernetes.server_minor < _POD_FAILURE_POLICY:
        return {}
    rules: list[Body] = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    ]
    if not kubernetes.retries_per_index:
        action = "FailIndex" if kubernetes.server_minor >= _BACKOFF_PER_INDEX else "FailJob"
        exited = {"containerName": CONTAINER, "operator": "NotIn", "values": [0]}
        rules.append({"action": action, "onExitCodes": exited})
    fields: Body = {"podFailurePolicy": {"rules": rules}}
    if kubernetes.server_minor >= _POD_REPLACEMENT:
        # Never two pods for one index: the next starts when the last one has ended.
        fields["podReplacementPolicy"] = "Failed"
    return fields

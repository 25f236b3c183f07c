"""What a Kubernetes API's answers say of Jobs: how one stands, whose it is, and which a cluster has.

A Job's conditions decide how it ended. Counts alone do not: between two pods of one index nothing is active, and what has
failed until then may yet be made good.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from runtender.observed import ClusterFacts, LiveState, Present, WorkerSet, WorkersVerdict
from runtender.ports import FleetPage, Sighted

Body = Mapping[str, Any]

_TERMINATING = "Terminating"


class JobState(StrEnum):
    """What a look at a Job says."""

    NOT_FOUND = "NOT_FOUND"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


# A cluster in one of these states is still one while it can be reached.
_BROKEN = frozenset({"STOPPING", "ERROR", "DEGRADED"})


def classify_job(job: Body | None) -> tuple[JobState, str]:
    """Return a Job's state and a word on it. A failed pod counts only once none is active."""
    if job is None:
        return JobState.NOT_FOUND, "Kubernetes Job not found"
    status, completions = part(job, "status"), part(job, "spec").get("completions") or 1
    active, succeeded, failed = (count(status, name) for name in ("active", "succeeded", "failed"))
    for condition in items(status, "conditions"):
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


def judge_cluster(cluster: ClusterFacts | None) -> JobState | None:
    """Return what a cluster says of a job on it, by itself; None where its Kubernetes API can be asked."""
    if cluster is None:
        return JobState.NOT_FOUND
    if cluster.status == "PROVISIONING":
        return JobState.RUNNING
    if cluster.has_endpoint:
        return None
    return JobState.FAILED if cluster.status in _BROKEN else JobState.RUNNING


def read_workers(job: Body) -> WorkerSet:
    """Read the workers of a Job: RUNNING until a condition, or a success of every index, says otherwise."""
    state, detail = classify_job(job)
    status, failed = part(job, "status"), _condition(job, "Failed")
    verdict = WorkersVerdict(state.value)
    if verdict is WorkersVerdict.FAILED and failed is None:
        verdict = WorkersVerdict.RUNNING
    return WorkerSet(
        verdict=verdict,
        detail=detail,
        completions=part(job, "spec").get("completions") or 1,
        active=count(status, "active"),
        ready=count(status, "ready"),
        succeeded=count(status, "succeeded"),
        failed=count(status, "failed"),
        completed_indexes=text(status, "completedIndexes"),
        failed_indexes=text(status, "failedIndexes"),
        failed_reason=text(failed or {}, "reason"),
        started_at=moment(status, "startTime"),
        # A Job that failed has no completion time, but its condition has one.
        completed_at=moment(status, "completionTime") or moment(failed or {}, "lastTransitionTime"),
    )


def read_job(job: Body) -> Present | None:
    """Read a Job; None for what is none. One that has finished is still there."""
    about = part(job, "metadata")
    uid = text(about, "uid")
    if not uid:
        return None
    labels, workers = part(about, "labels"), read_workers(job)
    ending = "deletionTimestamp" in about
    return Present(
        state=LiveState.ENDING if ending else LiveState.RUNNING,
        native_state=_TERMINATING if ending else workers.verdict.value,
        uid=uid,
        nonce=text(labels, "sf-nonce"),
        key=text(labels, "sf-key"),
        plane=text(labels, "sf-plane"),
        created_at=moment(about, "creationTimestamp"),
        stopped_at=workers.completed_at,
        workers=workers,
    )


def read_fleet(listing: Body) -> FleetPage:
    """Read a page of a list of Jobs. The page does not say which cluster it is of: whoever asked knows."""
    jobs = [(text(part(job, "metadata"), "name"), read_job(job)) for job in items(listing, "items")]
    return FleetPage(
        workers=tuple(Sighted(name=name, location="", sight=sight) for name, sight in jobs if sight),
        next_page=text(part(listing, "metadata"), "continue") or None,
    )


def part(body: Body, key: str) -> Body:
    """Return an object within a body; empty where it is missing, or something else."""
    value = body.get(key)
    return value if isinstance(value, Mapping) else {}


def items(body: Body, key: str) -> list[Body]:
    """Return the objects of a list within a body; none where there is no list."""
    values = body.get(key)
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def text(body: Body, key: str) -> str:
    """Return a field's text; empty where it is missing, or something else."""
    value = body.get(key)
    return value if isinstance(value, str) else ""


def count(body: Body, key: str) -> int:
    """Return a field's number; 0 where it is missing, or something else."""
    value = body.get(key)
    return value if isinstance(value, int) else 0


def moment(body: Body, key: str) -> datetime | None:
    """Return a field's time in UTC; None where it is missing, unreadable, or the zero that stands for none."""
    try:
        told = datetime.fromisoformat(text(body, key))
    except ValueError:
        return None
    return told.astimezone(UTC) if told.tzinfo and told.timestamp() > 0 else None


def _condition(job: Body, kind: str) -> Body | None:
    holds = (
        condition
        for condition in items(part(job, "status"), "conditions")
        if (condition.get("type"), condition.get("status")) == (kind, "True")
    )
    return next(holds, None)

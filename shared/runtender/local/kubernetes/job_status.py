"""How a Job's state shows in its status. Every function changes a copy of the Job."""

from __future__ import annotations

from datetime import datetime

from runtender.local.kubernetes.documents import Document, holds, set_condition, stamp
from runtender.local.kubernetes.job_account import Finding
from runtender.local.kubernetes.job_pods import JobPods

# From this version 1.x on a Job says how many of its pods are about to end.
_TERMINATING_SHOWN = 29


def show_start(job: Document, now: datetime) -> None:
    """Show that a Job is being looked after, for the first time or again."""
    job.setdefault("status", {})["startTime"] = stamp(now)
    if holds(job, "Suspended"):
        set_condition(job, "Suspended", False, now, reason="JobResumed", message="Job resumed")


def show_pods(status: Document, pods: JobPods, minor: int) -> None:
    """Show how many pods are at work. Zero is left out where Kubernetes leaves it out."""
    if pods.active:
        status["active"] = len(pods.active)
    else:
        status.pop("active", None)
    status["ready"] = pods.ready
    if minor >= _TERMINATING_SHOWN:
        status["terminating"] = len(pods.ending)
    status["uncountedTerminatedPods"] = {}


def show_failure(job: Document, finding: Finding, now: datetime, *, still: bool) -> None:
    """Show that a Job has to fail, and, once none of its pods is left at work, that it has."""
    words = {"reason": finding.reason, "message": finding.message}
    set_condition(job, "FailureTarget", True, now, **words)
    if still:
        set_condition(job, "Failed", True, now, **words)


def show_completion(job: Document, now: datetime, *, still: bool) -> None:
    """Show that a Job has what it asked for, and, once none of its pods is left at work, that it is complete."""
    words = {"reason": "CompletionsReached", "message": "Reached expected number of succeeded pods"}
    set_condition(job, "SuccessCriteriaMet", True, now, **words)
    if still:
        set_condition(job, "Complete", True, now, **words)
        job["status"]["completionTime"] = stamp(now)


def show_suspension(job: Document, now: datetime) -> None:
    """Show that a Job rests."""
    job["status"].pop("startTime", None)
    set_condition(job, "Suspended", True, now, reason="JobSuspended", message="Job suspended")

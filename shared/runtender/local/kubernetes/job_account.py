"""A Job's account: which pods have ended how, which indexes are done or lost, and whether that ends the Job.

The account is the Job's status. What a status has no room for, failures by index and when the last one was, is kept beside
it, because waits between tries follow from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from runtender.local.kubernetes.documents import Document, condition_of, holds, moment_of
from runtender.local.kubernetes.failure_policy import Action, rule_on
from runtender.local.kubernetes.indexes import format_indexes, parse_indexes
from runtender.local.kubernetes.job_pods import JobPods, index_of, is_indexed
from runtender.local.kubernetes.pods import phase_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A reason for a Job to end, as its condition gives it."""

    reason: str
    message: str


@dataclass(kw_only=True, slots=True)
class Memory:
    """What is known of a Job beside its status. The key None stands for a Job without indexes of its own back-off.

    `failures` are counted against limits, `setbacks` are all pods that failed in a row; `wakes` are times it is woken at.
    """

    failures: Counter[int] = field(default_factory=Counter)
    setbacks: Counter[int | None] = field(default_factory=Counter)
    last_setback: dict[int | None, datetime] = field(default_factory=dict)
    create_after: datetime | None = None
    wakes: set[datetime] = field(default_factory=set)


class Account:
    """One look at a Job: begun with the status as it was, and written back when all is counted."""

    def __init__(self, job: Document, memory: Memory, now: datetime) -> None:
        status = job.get("status") or {}
        self.job = job
        self.memory = memory
        self.now = now
        self.done = parse_indexes(status.get("completedIndexes", ""))
        self.lost = parse_indexes(status.get("failedIndexes", ""))
        self.succeeded: int = status.get("succeeded", 0)
        self.failed: int = status.get("failed", 0)
        self.policy: Finding | None = None

    @property
    def spec(self) -> Mapping[str, Any]:
        """The Job's spec."""
        found: Mapping[str, Any] = self.job["spec"]
        return found

    @property
    def by_index(self) -> bool:
        """True for a Job whose indexes fail each for itself."""
        return self.spec.get("backoffLimitPerIndex") is not None

    def count(self, pods: JobPods) -> None:
        """Take the pods that have ended into the account."""
        for pod in pods.fresh:
            if phase_of(pod) == "Succeeded":
                self._count_success(pod)
            else:
                self._count_failure(pod)

    def finding(self) -> Finding | None:
        """Return why the Job has to fail; None while it has not. What was found once, stays."""
        before = condition_of(self.job, "FailureTarget")
        if before is not None and before["status"] == "True":
            return Finding(reason=before["reason"], message=before["message"])
        if self.policy is not None:
            return self.policy
        if self.failed > self.spec["backoffLimit"]:
            words = "Job has reached the specified backoff limit"
            return Finding(reason="BackoffLimitExceeded", message=words)
        due = deadline_of(self.job)
        if due is not None and self.now >= due:
            words = "Job was active longer than specified deadline"
            return Finding(reason="DeadlineExceeded", message=words)
        return self._index_finding() if self.by_index else None

    def is_complete(self, pods: JobPods) -> bool:
        """True when as many pods have succeeded as the Job asks for."""
        wanted = self.spec.get("completions")
        if wanted is None:
            return self.succeeded > 0 and not pods.active
        return self.succeeded >= wanted and not pods.active

    def wanted(self, pods: JobPods) -> int:
        """Return how many pods are to be at work."""
        parallelism = int(self.spec.get("parallelism", 1))
        completions = self.spec.get("completions")
        if completions is None:
            return len(pods.active) if self.succeeded else parallelism
        open_ones: int = completions - self.succeeded - (len(self.lost) if self.by_index else 0)
        return max(0, min(open_ones, parallelism))

    def free_indexes(self, pods: JobPods, ending: frozenset[int]) -> list[int]:
        """Return the indexes that need a pod, lowest first."""
        taken = pods.taken | ending | self.done | self.lost
        return [index for index in range(self.spec["completions"]) if index not in taken]

    def ready_at(self, index: int | None, first: timedelta, longest: timedelta) -> datetime:
        """Return when the next pod may be made: later after each failure in a row."""
        key = index if self.by_index else None
        if not self.memory.setbacks[key]:
            return self.now
        doublings = min(self.memory.setbacks[key] - 1, 30)
        wait: timedelta = min(longest, first * 2**doublings)
        return self.memory.last_setback[key] + wait

    def write(self, status: Document) -> None:
        """Write the counts into a status."""
        counts: dict[str, int | str] = {"succeeded": self.succeeded, "failed": self.failed}
        if is_indexed(self.job):
            counts["completedIndexes"] = format_indexes(self.done)
        if self.by_index:
            counts["failedIndexes"] = format_indexes(self.lost)
        for name, value in counts.items():
            if value or name == "failedIndexes":
                status[name] = value

    def _count_success(self, pod: Document) -> None:
        index = index_of(pod)
        key = index if self.by_index else None
        self.memory.setbacks.pop(key, None)
        if not is_indexed(self.job):
            self.succeeded += 1
        elif index is not None and index < self.spec["completions"]:
            self.done.add(index)
            self.succeeded = len(self.done)

    def _count_failure(self, pod: Document) -> None:
        ruling = rule_on(self.job, pod) if phase_of(pod) == "Failed" else None
        action = ruling.action if ruling else Action.COUNT
        index = index_of(pod)
        key = index if self.by_index else None
        self.memory.setbacks[key] += 1
        self.memory.last_setback[key] = self.now
        if action is Action.IGNORE:
            return
        self.failed += 1
        if action is Action.FAIL_JOB and ruling is not None:
            self.policy = self.policy or Finding(reason="PodFailurePolicy", message=ruling.message)
        if not self.by_index or index is None:
            return
        self.memory.failures[index] += 1
        limit = self.spec["backoffLimitPerIndex"]
        if action is Action.FAIL_INDEX or self.memory.failures[index] > limit:
            self.lost.add(index)

    def _index_finding(self) -> Finding | None:
        most = self.spec.get("maxFailedIndexes")
        if most is not None and len(self.lost) > most:
            words = "Job has exceeded the specified maximal number of failed indexes"
            return Finding(reason="MaxFailedIndexesExceeded", message=words)
        if self.lost and len(self.lost | self.done) >= self.spec["completions"]:
            return Finding(reason="FailedIndexes", message="Job has failed indexes")
        return None


def is_finished(job: Mapping[str, Any]) -> bool:
    """True for a Job that has ended, well or badly."""
    return holds(job, "Complete") or holds(job, "Failed")


def deadline_of(job: Mapping[str, Any]) -> datetime | None:
    """Return when a Job has been at it for too long; pods that wait count like pods that work."""
    seconds = job["spec"].get("activeDeadlineSeconds")
    started = job.get("status", {}).get("startTime")
    if seconds is None or started is None:
        return None
    return moment_of(started) + timedelta(seconds=seconds)

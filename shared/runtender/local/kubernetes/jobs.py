"""The Job controller: makes the pods a Job asks for, counts those that end, and says when the Job has.

It follows the controller of Kubernetes 1.34: conditions `FailureTarget` and `SuccessCriteriaMet` say that the end is
decided, `Failed` and `Complete` follow when no pod is left at work.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from runtender.local.kubernetes.admission import Admission
from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.deletion import begin_deletion
from runtender.local.kubernetes.documents import (
    Document,
    Key,
    condition_of,
    controller_of,
    drop_finalizer,
    finalizers_of,
    holds,
    is_ending,
    moment_of,
    name_of,
    uid_of,
)
from runtender.local.kubernetes.errors import StatusError
from runtender.local.kubernetes.job_account import Account, Finding, Memory, deadline_of, is_finished
from runtender.local.kubernetes.job_pods import (
    TRACKING,
    JobPods,
    index_of,
    is_indexed,
    make_pod,
    replaces_failed_only,
)
from runtender.local.kubernetes.job_status import (
    show_completion,
    show_failure,
    show_pods,
    show_start,
    show_suspension,
)
from runtender.local.kubernetes.pods import phase_of, pod_key
from runtender.local.kubernetes.recorder import Recorder
from runtender.local.kubernetes.removal import Removal
from runtender.local.kubernetes.store import Change, ChangeType

SOURCE = "job-controller"


class JobController:
    """Looks after the Jobs of a cluster."""

    def __init__(self, cluster: Cluster, recorder: Recorder, admission: Admission, removal: Removal) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._admission = admission
        self._removal = removal
        self._memories: dict[str, Memory] = {}
        cluster.store.subscribe(self._hear)

    def _hear(self, change: Change) -> None:
        if change.key.resource == "jobs":
            if change.type is ChangeType.DELETED:
                self._memories.pop(uid_of(change.document), None)
                for pod in self._cluster.store.owned_by(uid_of(change.document), "pods"):
                    self._cluster.wake(self._release_orphan, pod_key(pod))
            else:
                self._cluster.wake(self._sync, change.key)
        elif change.key.resource == "pods":
            owner = controller_of(change.document)
            job = self._cluster.store.find(owner["uid"]) if owner else None
            if job is not None and job["kind"] == "Job":
                key = Key(resource="jobs", namespace=change.key.namespace, name=name_of(job))
                self._cluster.wake(self._sync, key)
            elif change.type is not ChangeType.DELETED and TRACKING in finalizers_of(change.document):
                self._cluster.wake(self._release_orphan, change.key)

    def _release_orphan(self, key: Key) -> None:
        """Hold a pod back no longer whose Job is gone."""
        pod = self._cluster.store.get(key)
        owner = controller_of(pod) if pod else None
        if owner is None or self._cluster.store.find(owner["uid"]) is None:
            self._release([key])

    def _release(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._cluster.store.edit(key, lambda pod: drop_finalizer(pod, TRACKING))

    def _sync(self, key: Key) -> None:
        job = self._cluster.store.get(key)
        if job is None:
            return
        pods = JobPods.sort(job, self._cluster.store.owned_by(uid_of(job), "pods"))
        if is_finished(job):
            self._release(pod_key(pod) for pod in pods.fresh)
            self._plan_removal(key, job)
            return
        if "startTime" not in job.get("status", {}) and not job["spec"].get("suspend"):
            # The look that follows this change goes on.
            self._begin(key)
            return
        memory = self._memories.setdefault(uid_of(job), Memory())
        account = Account(job, memory, self._cluster.now)
        account.count(pods)
        finding = account.finding()
        complete = finding is None and account.is_complete(pods)
        if finding is not None:
            self._end_pods(job, pods.active)
        elif not complete and not is_ending(job):
            self._manage(key, job, account, pods)
        # What was made or told to end just now counts at once.
        after = JobPods.sort(job, self._cluster.store.owned_by(uid_of(job), "pods"))
        self._write(key, account, after, finding, complete=complete)
        self._release(pod_key(pod) for pod in pods.fresh)
        due = deadline_of(job)
        if due is not None and due > self._cluster.now:
            self._wake_at(key, memory, due)

    def _begin(self, key: Key) -> None:
        now = self._cluster.now
        job = self._cluster.store.edit(key, lambda copy: show_start(copy, now))
        if job is not None and condition_of(job, "Suspended"):
            self._recorder.normal(job, SOURCE, "Resumed", "Job resumed")

    def _manage(self, key: Key, job: Document, account: Account, pods: JobPods) -> None:
        """Make the pods that are missing, or end those that are too many."""
        if job["spec"].get("suspend"):
            self._end_pods(job, pods.active)
            return
        wanted = account.wanted(pods)
        surplus = len(pods.active) - wanted
        if surplus > 0:
            # Those that have not begun go first.
            waiting_first = sorted(pods.active, key=lambda pod: phase_of(pod) != "Pending")
            self._end_pods(job, waiting_first[:surplus])
            return
        held = pods.ending if replaces_failed_only(job) else ()
        room = wanted - len(pods.active) - len(held)
        if room > 0:
            self._make(key, job, account, self._openings(account, pods, held, room))

    def _openings(
        self, account: Account, pods: JobPods, held: Iterable[Document], room: int
    ) -> list[int | None]:
        if not is_indexed(account.job):
            return [None] * room
        ending = frozenset(index for pod in held if (index := index_of(pod)) is not None)
        return list(account.free_indexes(pods, ending)[:room])

    def _make(self, key: Key, job: Document, account: Account, openings: Iterable[int | None]) -> None:
        cluster, memory = self._cluster, account.memory
        timings = cluster.timings
        for index in openings:
            ready_at = account.ready_at(index, timings.retry, timings.longest_retry)
            not_before = max(ready_at, memory.create_after or ready_at)
            if not_before > cluster.now:
                self._wake_at(key, memory, not_before)
                continue
            failures = memory.failures[index] if account.by_index and index is not None else None
            pod = make_pod(job, index, suffix=cluster.suffix(), failures=failures)
            try:
                self._admission.admit("pods", pod)
            except StatusError as refusal:
                words = f"Error creating: {refusal}"
                self._recorder.warning(job, SOURCE, "FailedCreate", words)
                memory.create_after = cluster.now + timings.create_retry
                self._wake_at(key, memory, memory.create_after)
                return
            cluster.store.put("pods", cluster.complete(pod))
            self._recorder.normal(job, SOURCE, "SuccessfulCreate", f"Created pod: {name_of(pod)}")

    def _end_pods(self, job: Document, pods: Iterable[Document]) -> None:
        for pod in pods:
            begin_deletion(self._cluster, pod_key(pod))
            self._recorder.normal(job, SOURCE, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    def _write(
        self, key: Key, account: Account, pods: JobPods, finding: Finding | None, *, complete: bool
    ) -> None:
        now, minor = self._cluster.now, self._cluster.minor
        before = self._cluster.store.get(key)

        def write(job: Document) -> None:
            account.write(job.setdefault("status", {}))
            show_pods(job["status"], pods, minor)
            if finding is not None:
                show_failure(job, finding, now, still=pods.still)
            elif complete:
                show_completion(job, now, still=pods.still)
            elif job["spec"].get("suspend"):
                show_suspension(job, now)

        job = self._cluster.store.edit(key, write)
        if job is None or before is None:
            return
        if holds(job, "Failed") and finding is not None:
            self._recorder.warning(job, SOURCE, finding.reason, finding.message)
        elif holds(job, "Complete"):
            self._recorder.normal(job, SOURCE, "Completed", "Job completed")
        elif holds(job, "Suspended") and not holds(before, "Suspended"):
            self._recorder.normal(job, SOURCE, "Suspended", "Job suspended")

    def _plan_removal(self, key: Key, job: Document) -> None:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        ended = condition_of(job, "Complete") or condition_of(job, "Failed")
        if seconds is None or ended is None or is_ending(job):
            return
        due = moment_of(ended["lastTransitionTime"]) + timedelta(seconds=seconds)
        if due <= self._cluster.now:
            self._removal.cascade(key)
            return
        self._wake_at(key, self._memories.setdefault(uid_of(job), Memory()), due)

    def _wake_at(self, key: Key, memory: Memory, due: datetime) -> None:
        """Look at a Job again at a time; each time is noted once."""
        if due in memory.wakes:
            return
        memory.wakes.add(due)

        def wake() -> None:
            memory.wakes.discard(due)
            self._cluster.wake(self._sync, key)

        self._cluster.at(due, wake)

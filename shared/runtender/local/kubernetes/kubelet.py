"""A pod's life on its node, from the moment it is given one: prepared, run, and ended, each told in the pod's status.

What the container itself does is reported by whoever runs it. Only the first container of a pod is run: the others are
taken to live as long as that one, and init containers to have ended well.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.documents import Document, Key, is_ending, metadata_of, uid_of
from runtender.local.kubernetes.events import KillReason, PodKill, PodRemoved
from runtender.local.kubernetes.logs import PodLogs
from runtender.local.kubernetes.pod_status import (
    KILLED,
    let_go,
    show_admitted,
    show_ended,
    show_running,
    show_waiting,
    terminated,
)
from runtender.local.kubernetes.pods import deadline_of, first_container, grace_s, is_over, node_of
from runtender.local.kubernetes.preparing import KUBELET, Preparing, growing
from runtender.local.kubernetes.recorder import Recorder
from runtender.local.kubernetes.runs import Run, Runs, Stage
from runtender.local.kubernetes.store import Change, ChangeType

_OVERDUE = "Pod was active on the node longer than the specified deadline"


class Kubelet:
    """All nodes' kubelets in one. `images` says whether an image is there to be pulled."""

    def __init__(
        self, cluster: Cluster, recorder: Recorder, *, images: Callable[[str], bool], lost: set[str]
    ) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._runs = Runs(cluster, lost)
        self._preparing = Preparing(cluster, recorder, self._runs, images)
        self.logs = PodLogs()
        cluster.store.subscribe(self._hear)

    def restart_of(self, uid: str) -> int:
        """Return how often a pod's container was started again."""
        run = self._runs.get(uid)
        return 0 if run is None else run.restart

    def pod_started(self, uid: str, restart: int) -> None:
        """Learn that a container runs."""
        run = self._runs.alive(uid, restart)
        if run is not None and run.stage is Stage.ASKED:
            now = self._cluster.now
            run.stage, run.started_at = Stage.RUNNING, now
            self._cluster.store.edit(run.key, lambda pod: show_running(pod, now, restart))

    def pod_log(self, uid: str, chunk: bytes) -> None:
        """Keep what a container printed."""
        run = self._runs.get(uid)
        if run is not None and not self._runs.is_lost(run):
            self.logs.write(uid, run.restart, chunk, self._cluster.now)

    def pod_exited(self, uid: str, exit_code: int, restart: int, *, oom: bool) -> None:
        """Learn that a container has ended, which also says that it ran."""
        self.pod_started(uid, restart)
        run = self._runs.alive(uid, restart)
        pod = None if run is None else self._cluster.store.get(run.key)
        if run is not None and pod is not None:
            self._end(pod, run, exit_code, oom=oom)

    def stop(self, uid: str, why: KillReason, grace: int, *, reason: str = "", message: str = "") -> None:
        """Make a pod end within `grace` seconds. `reason` and `message` become its status's."""
        run = self._runs.get(uid)
        pod = None if run is None else self._cluster.store.get(run.key)
        if run is None or pod is None or run.killed or run.stage is Stage.ENDED or self._runs.is_lost(run):
            return
        run.killed, run.reason, run.message = True, reason, message
        container = first_container(pod)["name"]
        self._recorder.normal(pod, KUBELET, "Killing", f"Stopping container {container}")
        timings = self._cluster.timings
        if not run.has_container:
            self._runs.later(run, timings.stop, self._kill)
            return
        span = grace * timings.grace_unit
        self._cluster.tell(PodKill(uid=uid, reason=why, grace=span))
        self._runs.later(run, span + timings.kill_margin, self._kill)

    def lose(self, node: str) -> None:
        """Let a node's machine be gone: its containers are dead, and nobody says so."""
        for run in self._runs.on(node):
            if run.has_container:
                self._cluster.tell(PodKill(uid=run.uid, reason=KillReason.NODE_LOST, grace=timedelta()))

    def _hear(self, change: Change) -> None:
        if change.key.resource != "pods":
            return
        pod, uid = change.document, uid_of(change.document)
        if change.type is ChangeType.DELETED:
            self.logs.forget(uid)
            if self._runs.drop(uid) is not None:
                self._cluster.tell(PodRemoved(uid=uid))
        elif self._runs.get(uid) is None:
            if node_of(pod) and not is_over(pod):
                self._runs.add(uid, change.key, node_of(pod))
                self._cluster.wake(self._admit, change.key)
        elif is_ending(pod):
            self._cluster.wake(self._obey, change.key)

    def _admit(self, key: Key) -> None:
        """Take a pod over that was given a node."""
        now = self._cluster.now
        pod = self._cluster.store.edit(key, lambda pod: show_admitted(pod, now))
        run = None if pod is None else self._runs.get(uid_of(pod))
        if pod is None or run is None:
            return
        deadline = deadline_of(pod)
        if deadline is not None:
            self._cluster.later(deadline, lambda: self._overdue(run))
        self._preparing.begin(pod, run)

    def _overdue(self, run: Run) -> None:
        pod = self._cluster.store.get(run.key)
        if pod is not None and uid_of(pod) == run.uid and not is_over(pod):
            why = KillReason.DEADLINE
            self.stop(run.uid, why, grace_s(pod), reason="DeadlineExceeded", message=_OVERDUE)

    def _obey(self, key: Key) -> None:
        """Carry out a deletion. A pod that is over has nothing left to end."""
        pod = self._cluster.store.get(key)
        run = None if pod is None else self._runs.get(uid_of(pod))
        if pod is None or run is None or self._runs.is_lost(run):
            return
        if is_over(pod):
            self._cluster.store.edit(key, let_go)
        else:
            self.stop(run.uid, KillReason.DELETED, metadata_of(pod).get("deletionGracePeriodSeconds", 0))

    def _kill(self, pod: Document, run: Run) -> None:
        self._end(pod, run, KILLED)

    def _end(self, pod: Document, run: Run, exit_code: int, *, oom: bool = False) -> None:
        """Show that a container has ended, and start it again where the pod's policy says so."""
        now = self._cluster.now
        ended = terminated(exit_code, uid=run.uid, started_at=run.started_at, now=now, oom=oom)
        policy = pod["spec"].get("restartPolicy", "Always")
        again = policy == "Always" or (policy == "OnFailure" and exit_code != 0)
        if again and not run.killed and not is_ending(pod):
            self._restart(pod, run, ended)
            return
        run.stage = Stage.ENDED

        def end(document: Document) -> None:
            show_ended(document, now, ended, run.restart, reason=run.reason, message=run.message)

        self._cluster.store.edit(run.key, end)

    def _restart(self, pod: Document, run: Run, ended: Document) -> None:
        now = self._cluster.now
        run.stage, run.restart, run.failures = Stage.PREPARING, run.restart + 1, run.failures + 1
        container = first_container(pod)["name"]
        words = f"Back-off restarting failed container {container}"
        self._recorder.warning(pod, KUBELET, "BackOff", words)

        def wait(document: Document) -> None:
            show_waiting(document, now, "CrashLoopBackOff", words, restarts=run.restart, last=ended)

        self._cluster.store.edit(run.key, wait)
        timings = self._cluster.timings
        span = growing(timings.restart, timings.longest_restart, run.failures)
        self._runs.later(run, span, self._preparing.start)

"""Runs simulated pods for real: each one's container is a process tree of its own on this computer.

It acts on the events of a simulated cluster, and reports back that containers run, what they print and how they end. A pod
lives by a pipe from here: should this process die, whatever way, the pipe ends and the pod with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections import deque
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from runtender.local.errors import LocalCloudError
from runtender.local.kubernetes.events import (
    Event,
    KillReason,
    PodKill,
    PodRemoved,
    PodReports,
    PodStarted,
)
from runtender.local.pods.sandbox import ContainerOrder, PodHome
from runtender.local.tethered import Tethered
from runtender.local.vm.guest import WorkerEnvironment, isolated_python
from runtender.local.watch import processes_of

_END_S = 10.0
"""How long the last words of a pod may take to arrive once it has ended; this is for a slow computer."""

_CHUNK = 64 * 1024
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


class PodRunner:
    """All running pods of a cluster, in folders below `root`. Events come from one thread, in order.

    `storage_url` is where the simulated Cloud Storage answers. `cores` bounds those that one pod has, of this computer's;
    None: all. Raises `LocalCloudError` where processes cannot be kept together as this needs it.
    """

    def __init__(
        self,
        *,
        root: Path,
        storage_url: str,
        reports: PodReports,
        worker: WorkerEnvironment | None = None,
        cores: int | None = None,
    ) -> None:
        if sys.platform != "linux":
            raise LocalCloudError("simulated pods need Linux: run the local cloud there, or in a container")
        self._root = root
        self._storage_url = storage_url
        self._reports = reports
        self._worker = worker or WorkerEnvironment()
        self._cores = deque(sorted(os.sched_getaffinity(0)))
        self._cores_of_pod = cores or len(self._cores)
        self._pods: dict[str, _RunningPod] = {}
        self._homes: dict[str, PodHome] = {}

    def apply(self, event: Event) -> None:
        """Do what an event says."""
        match event:
            case PodStarted():
                self._start(event)
            case PodKill(uid=uid):
                if pod := self._pods.get(uid):
                    pod.stop(event)
            case PodRemoved(uid=uid):
                self._end(uid)
                if home := self._homes.pop(uid, None):
                    shutil.rmtree(home.root, ignore_errors=True)
            case _:
                assert_never(event)

    def processes(self, apart_from: Container[str] = ()) -> int:
        """Count the processes of all pods that run, apart from those of these uids."""
        pods = tuple(self._pods.items())
        return sum(pod.process.count() for uid, pod in pods if uid not in apart_from)

    def end_container(self, uid: str, exit_code: int, *, oom: bool = False) -> None:
        """End what runs in a pod as if by itself, with this code; `oom`: because memory ran out."""
        if pod := self._pods.get(uid):
            pod.end_container(exit_code, oom=oom)

    def kill_worker(self, uid: str) -> None:
        """Kill what the first process of a pod has started, and not itself: it is there to tell."""
        if pod := self._pods.get(uid):
            pod.process.tell("kill_below")

    def close(self) -> None:
        """End all pods at once and remove their folders."""
        for uid in tuple(self._pods):
            self._end(uid)
        for home in self._homes.values():
            shutil.rmtree(home.root, ignore_errors=True)
        self._homes.clear()

    def _start(self, pod: PodStarted) -> None:
        self._end(pod.uid)
        # A container that is started again finds the pod's files.
        home = self._homes.setdefault(pod.uid, PodHome(self._root / f"{pod.name}-{pod.uid[:8]}"))
        home.make(
            ContainerOrder(
                argv=(*pod.command, *pod.args),
                environment={
                    "STORAGE_EMULATOR_HOST": self._storage_url,
                    **(self._worker.variables or {}),
                    **pod.env,
                },
                hostname=pod.hostname,
                python=self._worker.python,
                cores=self._next_cores(),
            )
        )
        self._pods[pod.uid] = _RunningPod.start(pod, home, self._reports)

    def _next_cores(self) -> tuple[int, ...]:
        """Deal out cores in turn."""
        dealt = tuple(self._cores)[: self._cores_of_pod]
        self._cores.rotate(-len(dealt))
        return dealt

    def _end(self, uid: str) -> None:
        if pod := self._pods.pop(uid, None):
            pod.end()


@dataclass(kw_only=True, slots=True)
class _RunningPod:
    """One pod that runs: its process, and the thread that reads what it prints and reports how it ends."""

    started: PodStarted
    home: PodHome
    process: Tethered
    reports: PodReports
    _reader: threading.Thread = field(init=False)
    _out_of_memory: bool = False
    _is_heard: bool = True

    @classmethod
    def start(cls, started: PodStarted, home: PodHome, reports: PodReports) -> _RunningPod:
        command = [*isolated_python("runtender.local.pods.sandbox"), str(home.root)]
        process = Tethered.start(command, folder=home.root, environment=_ENVIRONMENT)
        pod = cls(started=started, home=home, process=process, reports=reports)
        pod._reader = threading.Thread(target=pod._read, daemon=True)
        pod._reader.start()
        return pod

    def stop(self, order: PodKill) -> None:
        """Tell the container to end, and end it after the grace. Of a node that is lost nothing is heard any more."""
        if order.reason is KillReason.NODE_LOST:
            self._is_heard = False
        self.process.tell(f"stop {order.grace.total_seconds()}")

    def end_container(self, exit_code: int, *, oom: bool) -> None:
        """End the container with a code of the caller's choice instead of its own."""
        self._out_of_memory = oom
        self.process.tell(f"end {exit_code}")

    def end(self) -> None:
        """End all at once, report nothing more, and wait until nothing is left."""
        self._is_heard = False
        if not self.process.end():
            for pid in processes_of(self.home.root):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._reader.join(_END_S)

    def _read(self) -> None:
        """Report all that the container does, in order."""
        uid, restart = self.started.uid, self.started.restart
        self.reports.pod_started(uid, restart)
        with self.process.output as output:
            while chunk := os.read(output.fileno(), _CHUNK):
                if self._is_heard:
                    self.reports.pod_log(uid, chunk)
        code = self.process.wait()
        if self._is_heard:
            self.reports.pod_exited(uid, code, restart=restart, oom=self._out_of_memory)

"""The pods' side of a simulated world: each container does what it would really run, through the same storage.

A forecast's pod is one worker of an Indexed Job: its life mirrors `worker/index_bootstrap.py` function by function. It knows
only what its environment tells it. Any other container is somebody's command, which works for a while and ends.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Protocol

from runtender.local.kubernetes.events import PodStarted
from runtender.local.simulation.lives import Life
from runtender.local.simulation.storage import Network, WorkerStorage, is_stored, pause_s
from runtender.worker.index_bootstrap import INTERRUPTED, NO_STORAGE
from runtender.worker.layout import cells_object, summary_object
from runtender.worker.source import index_source

KILLED = 137
_FIRST_LOOK_S, _MARKER_S, _LAST_LOG_S, _HURRIED_LOG_S = 600.0, 120.0, 30.0, 5.0
_LEAVING_S = 1.0
_PANEL_FILES = 4
_A_LONG_TIME_S = 3600.0


class PodDeath(StrEnum):
    """Where a pod's container goes wrong without a word. One that hangs goes on running."""

    BEFORE_LOOKING = "before its first look"
    AT_WORK = "while the worker works"
    HANGS = "hangs while the worker works"
    BEFORE_TELLING = "when the work is done, before telling so"


@dataclass(frozen=True, kw_only=True, slots=True)
class PodBehaviour:
    """What is in store for a pod; spans in seconds. Of `cells` results `cells_failed` are errors.

    `summary` false: the worker ends without one; `complete` false: with one that says it is not whole. `out_of_memory`: the
    kernel ends it where its work would end. `obeys`: SIGTERM ends its command. `outlives_node`: when its node is lost, only
    the network is; the container goes on until the pod is forgotten.
    """

    work_s: float = 240
    exit_code: int = 0
    cells: int = 4
    cells_failed: int = 0
    summary: bool = True
    complete: bool = True
    out_of_memory: bool = False
    dies: PodDeath | None = None
    obeys: bool = True
    outlives_node: bool = False


ORDINARY_POD = PodBehaviour()
"""Four minutes of work, and a good end."""


class PodSurroundings(Network, Protocol):
    """What a pod can reach, and who hears of it."""

    def epoch(self) -> int:
        """Return the pod's clock."""

    def pod_started(self, uid: str) -> None:
        """Hear that the container runs."""

    def pod_works(self, pod: Pod) -> None:
        """Hear that its worker begins."""

    def pod_has_worked(self, pod: Pod) -> None:
        """Hear that its worker has come to a good end."""

    def pod_exited(self, pod: Pod, exit_code: int, *, oom: bool) -> None:
        """Hear that the container has ended by itself."""


class Pod:
    """One pod's container; it `works` while its worker is at it."""

    def __init__(self, order: PodStarted, behaviour: PodBehaviour, around: PodSurroundings) -> None:
        self.order = order
        self.behaviour = behaviour
        self.is_worker = order.command[2:3] == (_bootstrap(),)
        """True for one that runs the bootstrap, and not a command of its own."""
        self.told_to_end = False
        self.works = False
        self.life = self._main()
        self._around = around
        self._storage = WorkerStorage(order.name, around)
        self._started_at = 0

    @property
    def nonce(self) -> str:
        """The try that made this pod; "" for a stranger's."""
        return self.order.labels.get("sf-nonce", "")

    @property
    def key(self) -> str:
        """The job that this pod is of; "" for a stranger's."""
        return self.order.labels.get("sf-key", "")

    @property
    def index(self) -> int:
        """Which of the workers it is."""
        return int(self.order.env.get("JOB_COMPLETION_INDEX") or 0)

    def _main(self) -> Life:
        self._around.pod_started(self.order.uid)
        if self.behaviour.dies is PodDeath.BEFORE_LOOKING:
            self._exit(KILLED)
            return
        status = (yield from self._settled_status()) if self.is_worker else None
        if status is None:
            status = yield from self._attend()
        self.works = False
        self._exit(status)

    def _exit(self, status: int) -> None:
        oom = self.behaviour.out_of_memory and status == KILLED
        self._around.pod_exited(self, status, oom=oom)

    def _settled_status(self) -> Generator[float, None, int | None]:
        """Look whether this index, or the whole Job, has been decided; return what to exit with then."""
        for stem in (str(self.index), "job"):
            for nap in _tries(_FIRST_LOOK_S):
                if nap:
                    yield nap
                if self.told_to_end:
                    return INTERRUPTED
                answer = self._storage.read(self._bucket, self._marker_name(stem, "terminal"))
                if answer.status in {200, 403, 404}:
                    break
            else:
                return NO_STORAGE
            if answer.status == 200:
                return 0 if stem == "job" else _status_of(answer.body)
        return None

    def _attend(self) -> Generator[float, None, int]:
        self.works = True
        self._around.pod_works(self)
        self._started_at = self._around.epoch()
        told = not self.is_worker
        for seq in range(_PANEL_FILES):
            # The bootstrap tries beside its command; here a failed try is repeated while that works.
            told = told or self._store("started", {"status": "RUNNING"})
            yield self.behaviour.work_s / _PANEL_FILES
            if self.told_to_end and self.behaviour.obeys:
                return (yield from self._interrupted())
            if self.behaviour.dies is PodDeath.AT_WORK:
                return KILLED
            while self.behaviour.dies is PodDeath.HANGS:
                yield _A_LONG_TIME_S
                if self.told_to_end and self.behaviour.obeys:
                    return (yield from self._interrupted())
            if self.is_worker:
                self._storage.upload(self._cells, cells_object(self.index, seq), b"cells")
        return (yield from self._end_work())

    def _interrupted(self) -> Generator[float, None, int]:
        if self.is_worker:
            yield from self._ship_log(_HURRIED_LOG_S)
        return INTERRUPTED

    def _end_work(self) -> Generator[float, None, int]:
        behaviour = self.behaviour
        if behaviour.out_of_memory:
            return KILLED
        self.works = False
        if not behaviour.exit_code:
            self._around.pod_has_worked(self)
        if not self.is_worker:
            return behaviour.exit_code
        if behaviour.summary and not behaviour.exit_code:
            self._storage.upload(self._cells, summary_object(self.index), self._summary())
        if behaviour.dies is PodDeath.BEFORE_TELLING:
            return KILLED
        if self.told_to_end:
            return (yield from self._interrupted())
        yield from self._tell_ended()
        # Words are faster than the end of a process.
        yield _LEAVING_S
        return behaviour.exit_code

    def _tell_ended(self) -> Life:
        yield from self._ship_log(_LAST_LOG_S)
        code = self.behaviour.exit_code
        if code and int(self.order.env.get("SF_INDEX_RETRIES") or 0):
            return
        ending = {
            "status": "FAILED" if code else "SUCCEEDED",
            "exit_code": code,
            "reason": "ExitCode" if code else "Completed",
            "end_epoch": self._around.epoch(),
            "execute_s": self._around.epoch() - self._started_at,
        }
        for nap in _tries(_MARKER_S):
            if nap:
                yield nap
            if self._store("terminal", ending):
                return

    def _ship_log(self, patience_s: float) -> Life:
        bucket, _, folder = self.order.env["SF_LOGS_URI"].removeprefix("gs://").partition("/")
        for nap in _tries(patience_s):
            if nap:
                yield nap
            if is_stored(
                self._storage.create(bucket, f"{folder}/{self.index}.{self._around.epoch()}.log", b"log")
            ):
                return

    def _store(self, stage: str, more: Mapping[str, object]) -> bool:
        env = self.order.env
        body: dict[str, Any] = {
            "exit_code": None,
            "instance": self.order.hostname,
            "zone": "",
            "detail": "",
            "boot_epoch": self._started_at,
            "exec_start_epoch": self._started_at,
            "end_epoch": None,
            "execute_s": None,
            "writer": "bootstrap",
            "attempt": int(env["SF_ATTEMPT"]),
            "placement": int(env["SF_PLACEMENT"]),
            "signal": None,
            "preempted": False,
            "reason": None,
            "pod_uid": env["SF_POD_UID"],
            "log_uri": None,
            **more,
        }
        name = self._marker_name(str(self.index), stage)
        return is_stored(self._storage.create(self._bucket, name, json.dumps(body).encode()))

    def _summary(self) -> bytes:
        total, failed = self.behaviour.cells, self.behaviour.cells_failed
        counts = {"n_cells": total, "n_ok": total - failed, "n_error": failed}
        words = {"nonce": self.order.env["SF_NONCE"], "rank": self.index, "complete": self.behaviour.complete}
        return json.dumps({**words, **counts}).encode()

    def _marker_name(self, stem: str, stage: str) -> str:
        env = self.order.env
        return f"runs/status/{env['SF_JOB_KEY']}/{env['SF_NONCE']}/{stem}.{stage}.json"

    @property
    def _bucket(self) -> str:
        return self.order.env["SF_STATUS_BUCKET"]

    @property
    def _cells(self) -> str:
        return self.order.env["SF_CELLS_URI"]


def _tries(patience_s: float) -> Generator[float, None, None]:
    """Yield the nap before each try, the first without one, for as long as there is patience."""
    yield 0
    slept, tries = 0.0, 0
    while slept + (nap := pause_s(tries)) < patience_s:
        yield nap
        slept, tries = slept + nap, tries + 1


def _status_of(body: bytes) -> int:
    """Return what to exit with where a marker says how this index ended; one that nobody can read is no success."""
    try:
        marker = json.loads(body)
        return int(marker["exit_code"] or 1) if marker["status"] == "FAILED" else 0
    except (ValueError, KeyError, TypeError):
        return 1


@cache
def _bootstrap() -> str:
    return index_source()

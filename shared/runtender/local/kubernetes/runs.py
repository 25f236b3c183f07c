"""Pods on their nodes: how far each has come, and what is to happen to it later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.documents import Document, Key


class Stage(StrEnum):
    """How far a pod on a node has come. ASKED: its container is to start, and nobody has said yet that it did."""

    PREPARING = "preparing"
    ASKED = "asked"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(kw_only=True, slots=True)
class Run:
    """One pod on its node. `failures` counts what went wrong in a row.

    `killed`: it is made to end; `reason` and `message` say why, where that is no exit of its own.
    """

    uid: str
    key: Key
    node: str
    stage: Stage = Stage.PREPARING
    restart: int = 0
    failures: int = 0
    started_at: datetime | None = None
    killed: bool = False
    reason: str = ""
    message: str = ""

    @property
    def turn(self) -> tuple[bool, int, bool]:
        """What changes when a step that was noted for later is no longer due."""
        return (self.stage is Stage.PREPARING, self.restart, self.killed)

    @property
    def has_container(self) -> bool:
        """True while a container is there or about to be."""
        return self.stage in {Stage.ASKED, Stage.RUNNING}


class Runs:
    """The pods of all nodes, by UID. Nothing happens any more on the nodes that are `lost`."""

    def __init__(self, cluster: Cluster, lost: set[str]) -> None:
        self._cluster = cluster
        self._lost = lost
        self._runs: dict[str, Run] = {}

    def add(self, uid: str, key: Key, node: str) -> None:
        """Take a pod over that was given a node."""
        self._runs[uid] = Run(uid=uid, key=key, node=node)

    def get(self, uid: str) -> Run | None:
        """Return a pod's run."""
        return self._runs.get(uid)

    def drop(self, uid: str) -> Run | None:
        """Forget a pod that is gone."""
        return self._runs.pop(uid, None)

    def on(self, node: str) -> tuple[Run, ...]:
        """Return what a node looks after."""
        return tuple(run for run in self._runs.values() if run.node == node)

    def alive(self, uid: str, restart: int) -> Run | None:
        """Return the run that a report is about; None when it tells nothing: pod, container or node are gone."""
        run = self._runs.get(uid)
        if run is None or run.restart != restart or not run.has_container or self.is_lost(run):
            return None
        return run

    def is_lost(self, run: Run) -> bool:
        """True for a pod whose node is gone."""
        return run.node in self._lost

    def later(self, run: Run, span: timedelta, step: Callable[[Document, Run], None]) -> None:
        """Note a pod's next step. It is skipped when the pod has moved on by then."""
        turn = run.turn

        def take() -> None:
            current = self._runs.get(run.uid)
            if current is not run or run.turn != turn or run.stage is Stage.ENDED or self.is_lost(run):
                return
            pod = self._cluster.store.get(run.key)
            if pod is not None:
                step(pod, run)

        self._cluster.later(span, take)

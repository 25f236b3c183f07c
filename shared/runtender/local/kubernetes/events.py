"""What the simulated Kubernetes asks of whoever runs the pods, and what it wants to hear back.

The cluster decides which pod runs where and when it has to end; it starts no process. A runner acts on these events, in
order, and reports through `PodReports`. A simulation without processes makes up the reports.

    PodStarted   ->  run the container       ->  pod_started, pod_log ..., pod_exited
    PodKill      ->  SIGTERM, grace, SIGKILL  ->  pod_exited (not after a node is gone: nobody could tell)
    PodRemoved   ->  forget the pod and its files
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol


class KillReason(StrEnum):
    """Why a container has to end."""

    DELETED = "deleted"
    DEADLINE = "deadline"
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    NODE_LOST = "node_lost"


@dataclass(frozen=True, kw_only=True, slots=True)
class PodStarted:
    """A pod's container is to run: its image is there and its node has room.

    `restart` counts from 0: a pod that restarts its container (one of a Deployment) asks for it again with the next number.
    `command` and `args` are the pod's own, and empty where the image's count. `env` has every value filled in, those of
    the downward API too. `volumes` are the mount paths, each with the volume's type (`emptyDir`, `configMap`, ...).
    """

    cluster: str
    namespace: str
    name: str
    uid: str
    restart: int
    node: str
    hostname: str
    container: str
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: Mapping[str, str]
    working_dir: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    volumes: Mapping[str, str]
    service_account: str
    gpus: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PodKill:
    """A container has to end and has `grace` left: SIGTERM now, SIGKILL then. A grace of zero is SIGKILL at once.

    A runner that has not reported the exit soon after the grace is over is taken to have killed the container. After
    `NODE_LOST` no report counts any more.
    """

    uid: str
    reason: KillReason
    grace: timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class PodRemoved:
    """The pod is gone from the cluster, with its logs and its files. Whatever still runs of it ends now."""

    uid: str


Event = PodStarted | PodKill | PodRemoved


class PodReports(Protocol):
    """Where a runner tells what became of a container. Reports about a pod that is gone are ignored."""

    def pod_started(self, uid: str, restart: int = 0) -> None:
        """Say that the container runs."""

    def pod_log(self, uid: str, chunk: bytes) -> None:
        """Pass on what the container printed, stdout and stderr alike."""

    def pod_exited(self, uid: str, exit_code: int, *, restart: int = 0, oom: bool = False) -> None:
        """Say that the container has ended; 128 + n for signal n. `oom`: the kernel killed it for want of memory."""

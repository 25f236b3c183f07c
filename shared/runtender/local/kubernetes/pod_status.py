"""How a pod's life shows in its status, as the kubelet writes it. Every function changes a copy of the pod."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from runtender.local.kubernetes.documents import Document, is_ending, set_condition, stamp, uid_of
from runtender.local.kubernetes.pods import container_statuses

KILLED = 137
"""The exit code of a container that SIGKILL ended."""

_NODE_ADDRESS, _POD_ADDRESS = "10.0.0.2", "10.4.0.2"
_READINESS = ("Ready", "ContainersReady")


def show_admitted(pod: Document, now: datetime) -> None:
    """Show that a node has taken the pod over."""
    pod["status"].update(hostIP=_NODE_ADDRESS, podIP=_POD_ADDRESS, startTime=stamp(now))
    set_condition(pod, "Initialized", True, now)
    show_waiting(pod, now, "ContainerCreating")


def show_waiting(
    pod: Document,
    now: datetime,
    reason: str,
    message: str = "",
    *,
    restarts: int = 0,
    last: Mapping[str, Any] | None = None,
) -> None:
    """Show that the container does not run yet, or not at the moment, and why."""
    waiting = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    statuses = container_statuses(pod, waiting, restarts=restarts)
    for status in statuses:
        status["lastState"] = dict(last or {})
    pod["status"]["containerStatuses"] = statuses
    for kind in _READINESS:
        set_condition(pod, kind, False, now, reason="ContainersNotReady")


def show_running(pod: Document, now: datetime, restarts: int) -> None:
    """Show that the container runs."""
    running = {"running": {"startedAt": stamp(now)}}
    pod["status"]["phase"] = "Running"
    pod["status"]["containerStatuses"] = container_statuses(
        pod, running, ready=True, restarts=restarts, uid=uid_of(pod)
    )
    for kind in _READINESS:
        set_condition(pod, kind, True, now)


def show_ended(
    pod: Document, now: datetime, ended: Mapping[str, Any], restarts: int, *, reason: str, message: str
) -> None:
    """Show that the pod is over. With a `reason` it has failed, whatever its container said."""
    well = ended["terminated"]["exitCode"] == 0 and not reason
    status = pod["status"]
    status["phase"] = "Succeeded" if well else "Failed"
    status.update({key: text for key, text in (("reason", reason), ("message", message)) if text})
    status["containerStatuses"] = container_statuses(pod, ended, restarts=restarts, uid=uid_of(pod))
    for kind in _READINESS:
        set_condition(pod, kind, False, now, reason="PodCompleted" if well else "PodFailed")
    if is_ending(pod):
        let_go(pod)


def let_go(pod: Document) -> None:
    """Hold the pod back no longer: its node has nothing left of it."""
    pod["metadata"]["deletionGracePeriodSeconds"] = 0


def terminated(
    exit_code: int, *, uid: str, started_at: datetime | None, now: datetime, oom: bool
) -> Document:
    """Return the state of a container that has ended; one that never started was not to be found."""
    if started_at is None:
        words = "The container could not be located when the pod was terminated"
        return {"terminated": {"exitCode": exit_code, "reason": "ContainerStatusUnknown", "message": words,
                               "startedAt": None, "finishedAt": None}}  # fmt: skip
    reason = "OOMKilled" if oom else "Completed" if exit_code == 0 else "Error"
    return {
        "terminated": {
            "exitCode": exit_code,
            "reason": reason,
            "startedAt": stamp(started_at),
            "finishedAt": stamp(now),
            "containerID": f"containerd://{uid}",
        }
    }

"""What a pod's document says, read: where it runs, whether it is over, how its container ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from runtender.local.kubernetes.documents import Document, Key, name_of, namespace_of

_OVER = frozenset({"Succeeded", "Failed"})
_USUAL_GRACE_S = 30
_IMAGE_ID = "sha256:local"


def pod_key(pod: Document) -> Key:
    """Return where a pod is kept."""
    return Key(resource="pods", namespace=namespace_of(pod), name=name_of(pod))


def node_of(pod: Document) -> str:
    """Return the node that a pod was given; "" while it waits for one."""
    return str(pod["spec"].get("nodeName", ""))


def phase_of(pod: Document) -> str:
    """Return a pod's phase."""
    return str(pod.get("status", {}).get("phase", "Pending"))


def is_over(pod: Document) -> bool:
    """True for a pod that has ended, well or badly."""
    return phase_of(pod) in _OVER


def grace_s(pod: Document) -> int:
    """Return how many seconds a pod's container has between SIGTERM and SIGKILL."""
    return int(pod["spec"].get("terminationGracePeriodSeconds", _USUAL_GRACE_S))


def deadline_of(pod: Document) -> timedelta | None:
    """Return how long a pod may be on its node."""
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return None if seconds is None else timedelta(seconds=seconds)


def first_container(pod: Document) -> Document:
    """Return the container that is run. Others of a pod are taken to live as long as this one."""
    found: Document = pod["spec"]["containers"][0]
    return found


def container_statuses(
    pod: Document, state: Mapping[str, Any], *, ready: bool = False, restarts: int = 0, uid: str = ""
) -> list[Document]:
    """Return the statuses of a pod's containers, which all are in one state."""
    return [
        {
            "name": container["name"],
            "state": dict(state),
            "lastState": {},
            "ready": ready,
            "started": ready,
            "restartCount": restarts,
            "image": container["image"],
            "imageID": f"{container['image']}@{_IMAGE_ID}" if uid else "",
            **({"containerID": f"containerd://{uid}"} if uid else {}),
        }
        for container in pod["spec"]["containers"]
    ]

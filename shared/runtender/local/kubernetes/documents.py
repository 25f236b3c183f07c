"""Kubernetes objects as the cluster keeps them: plain JSON documents, and how to read and write their common parts.

A document in the store is never changed in place: whoever wants another one works on a copy (`Store.edit`), because
watches and lists still hold the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Document = dict[str, Any]

# Kinds whose conditions have room for when they were last looked at, which nobody fills any more.
_PROBED = frozenset({"Job", "Pod"})
_CONTAINERS = frozenset({dict, list})


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Key:
    """Where an object is kept: its resource (`jobs`), namespace ("" where it has none) and name."""

    resource: str
    namespace: str
    name: str


def copied(value: Any) -> Any:
    """Copy an object or a part of one. Many times faster than `deepcopy`, which is ready for more than JSON."""
    if type(value) is dict:
        return {key: copied(one) if type(one) in _CONTAINERS else one for key, one in value.items()}
    if type(value) is list:
        return [copied(one) if type(one) in _CONTAINERS else one for one in value]
    return value


def stamp(moment: datetime) -> str:
    """Write a time as Kubernetes does: whole seconds of UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def fine_stamp(moment: datetime) -> str:
    """Write a time with its microseconds, as the times of events have them."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_of(text: str) -> datetime:
    """Read a time that `stamp` or a client wrote; raises ValueError for anything else."""
    return datetime.fromisoformat(text)


def metadata_of(document: Mapping[str, Any]) -> Document:
    """Return an object's metadata, to be read."""
    found: Document = document["metadata"]
    return found


def name_of(document: Mapping[str, Any]) -> str:
    """Return an object's name."""
    return str(metadata_of(document)["name"])


def namespace_of(document: Mapping[str, Any]) -> str:
    """Return an object's namespace; "" where its kind has none."""
    return str(metadata_of(document).get("namespace", ""))


def uid_of(document: Mapping[str, Any]) -> str:
    """Return what tells an object from all others of its name."""
    return str(metadata_of(document)["uid"])


def labels_of(document: Mapping[str, Any]) -> Mapping[str, str]:
    """Return an object's labels."""
    return metadata_of(document).get("labels") or {}


def annotations_of(document: Mapping[str, Any]) -> Mapping[str, str]:
    """Return an object's annotations."""
    return metadata_of(document).get("annotations") or {}


def finalizers_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what has to happen before an object that is deleted is gone."""
    return tuple(metadata_of(document).get("finalizers") or ())


def owners_of(document: Mapping[str, Any]) -> tuple[Document, ...]:
    """Return an object's owner references."""
    return tuple(metadata_of(document).get("ownerReferences") or ())


def controller_of(document: Mapping[str, Any]) -> Document | None:
    """Return the reference to the one owner that looks after an object."""
    return next((owner for owner in owners_of(document) if owner.get("controller")), None)


def is_ending(document: Mapping[str, Any]) -> bool:
    """True for an object that was deleted and is not gone."""
    return "deletionTimestamp" in metadata_of(document)


def owner_reference(owner: Mapping[str, Any]) -> Document:
    """Return the reference by which a controller's object names it."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def drop_finalizer(document: Document, finalizer: str) -> None:
    """Take a finalizer off a copy."""
    kept = [one for one in finalizers_of(document) if one != finalizer]
    if kept:
        document["metadata"]["finalizers"] = kept
    else:
        document["metadata"].pop("finalizers", None)


def condition_of(document: Mapping[str, Any], kind: str) -> Document | None:
    """Return a condition of an object's status, whether it holds or not."""
    conditions: Iterable[Document] = document.get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == kind), None)


def holds(document: Mapping[str, Any], kind: str) -> bool:
    """True when an object's condition is `True`."""
    found = condition_of(document, kind)
    return found is not None and found["status"] == "True"


def set_condition(
    document: Document, kind: str, value: bool, now: datetime, *, reason: str = "", message: str = ""
) -> None:
    """Set a condition of a copy. The time of its last transition stays while its status does."""
    before = condition_of(document, kind)
    status = "True" if value else "False"
    since = before["lastTransitionTime"] if before and before["status"] == status else stamp(now)
    condition: Document = {"type": kind, "status": status, "lastTransitionTime": since}
    if document.get("kind") in _PROBED:
        condition["lastProbeTime"] = None
    condition |= {key: text for key, text in (("reason", reason), ("message", message)) if text}
    conditions = document.setdefault("status", {}).setdefault("conditions", [])
    if before is None:
        conditions.append(condition)
    else:
        conditions[conditions.index(before)] = condition

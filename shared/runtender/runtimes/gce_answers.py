"""What Compute Engine's answers say of VMs: one seen by itself, a page of the fleet, the records, the console.

A list says nothing by what it leaves out while a zone did not answer; the readers here tell such a list apart.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from runtender.model import Reason, Resource, ResourceKind
from runtender.observed import Fate, LiveState, Present
from runtender.ports import FleetPage, Sighted

Body = Mapping[str, Any]

_STATES: Mapping[str, LiveState] = {
    "PENDING": LiveState.STARTING,
    "PROVISIONING": LiveState.STARTING,
    "STAGING": LiveState.STARTING,
    "REPAIRING": LiveState.STARTING,
    "RUNNING": LiveState.RUNNING,
    "PENDING_STOP": LiveState.ENDING,
    "STOPPING": LiveState.ENDING,
    "SUSPENDING": LiveState.ENDING,
    "DEPROVISIONING": LiveState.ENDING,
    "STOPPED": LiveState.ENDED,
    "SUSPENDED": LiveState.ENDED,
    "TERMINATED": LiveState.ENDED,
}

# What the platform writes down when it ends a VM by itself; the first that is found counts.
_FATES: tuple[tuple[frozenset[str], Reason], ...] = (
    (frozenset({"compute.instances.preempted"}), Reason.PREEMPTED),
    (
        frozenset({"compute.instances.hostError", "compute.instances.terminateOnHostMaintenance"}),
        Reason.HOST_ERROR,
    ),
    # How `maxRunDuration` ends it.
    (frozenset({"compute.instances.deferredDelete", "compute.instances.deferredStop"}), Reason.TTL_EXPIRED),
)
_DELETES = frozenset({"delete", "compute.instances.deferredDelete"})
_GKE_LABEL = "goog-k8s-cluster-name"
_EMPTY_PAGE = "NO_RESULTS_ON_PAGE"


def instance_id(row: Resource) -> str | None:
    """Return the VM's numeric id, where an answer told it: it is one VM's alone, unlike its name."""
    return row.target_id or row.uid


def text(document: Body, key: str) -> str | None:
    """Return a field's text; None where it is missing, empty, or something else."""
    value = document.get(key)
    return value if isinstance(value, str) and value else None


def read_sight(instance: Body) -> Present | None:
    """Read an instance; None for a state that nobody has described to us, which is no observation."""
    native = text(instance, "status") or ""
    state = _STATES.get(native)
    if state is None:
        return None
    labels = instance.get("labels")
    labels = labels if isinstance(labels, Mapping) else {}
    return Present(
        state=state,
        native_state=native,
        uid=str(instance.get("id") or ""),
        nonce=text(labels, "sf-nonce") or "",
        key=text(labels, "sf-key") or "",
        plane=text(labels, "sf-plane") or "",
        created_at=_time(instance, "creationTimestamp"),
        stopped_at=_time(instance, "lastStopTimestamp"),
    )


def read_fleet(listing: Body) -> FleetPage:
    """Read a page of the aggregated list. What a cluster's label was handed on to is not ours and left out."""
    items = listing.get("items")
    scopes = _mappings(list(items.values())) if isinstance(items, Mapping) else []
    return FleetPage(
        workers=tuple(worker for scope in scopes for worker in _workers(_mappings(scope.get("instances")))),
        next_page=text(listing, "nextPageToken"),
        partial=_is_partial(listing) or any(map(_is_partial, scopes)),
    )


def read_fate(row: Resource, pages: Sequence[Body | None]) -> Fate | None:
    """Read all pages of a VM's operations; None when one is missing (also the last) or a place did not answer."""
    read = [page for page in pages if page is not None]
    if not read or len(read) < len(pages) or any(map(_is_partial, read)) or text(read[-1], "nextPageToken"):
        return None
    # Without the VM's id the records were asked for by name, which earlier VMs of the job have had too.
    types = {
        text(operation, "operationType")
        for page in read
        for operation in _mappings(page.get("items"))
        if instance_id(row) or (_time(operation, "insertTime") or row.since) >= row.since
    }
    reasons = (reason for listed, reason in _FATES if types & listed)
    return Fate(reason=next(reasons, None), deleted=bool(types & _DELETES))


def read_console(contents: str, nonce: str) -> bytes | None:
    """Return the newest terminal marker that the guest printed for this nonce, as the JSON it is; None without one."""
    said = re.findall(rf"SF-MARKER {re.escape(nonce)} (\S+)", contents)
    # The newest line may have been cut by the end of the VM.
    return next(filter(None, map(_marker_bytes, reversed(said))), None)


def _workers(instances: Sequence[Body]) -> Iterator[Sighted]:
    """Yield what is a worker: GKE hands its clusters' labels on to node VMs, which are not ours to judge."""
    for instance in instances:
        labels = instance.get("labels")
        sight = read_sight(instance)
        if not isinstance(labels, Mapping) or _GKE_LABEL in labels or sight is None:
            continue
        if labels.get("sf-kind") == ResourceKind.VM:
            zone = str(instance.get("zone") or "").rpartition("/")[2]
            yield Sighted(name=text(instance, "name") or "", location=zone, sight=sight)


def _is_partial(listing: Body) -> bool:
    warning = listing.get("warning")
    code = warning.get("code") if isinstance(warning, Mapping) else None
    return bool(listing.get("unreachables")) or code not in {None, _EMPTY_PAGE}


def _marker_bytes(encoded: str) -> bytes | None:
    try:
        body = base64.b64decode(encoded, validate=True)
        return body if isinstance(json.loads(body), dict) else None
    except (binascii.Error, ValueError, RecursionError):
        return None


def _mappings(values: Any) -> list[Body]:
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def _time(document: Body, key: str) -> datetime | None:
    """Read a time of the API (RFC 3339 with any offset) as UTC."""
    try:
        moment = datetime.fromisoformat(text(document, key) or "")
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None

"""The methods around machines: operations, disks, and the places with their quotas."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from runtender.local.compute import errors
from runtender.local.compute.disks import Disk
from runtender.local.compute.listing import Document, list_document, name_of, page_of
from runtender.local.compute.operations import API
from runtender.local.compute.routes import Call
from runtender.local.compute.state import Method, ProjectState


def get_operation(state: ProjectState, call: Call, _now: datetime) -> Document:
    """Return one operation."""
    operation = state.operations.get(call.zone, call.name)
    if operation is None:
        raise errors.not_found(f"projects/{state.project}/zones/{call.zone}/operations/{call.name}")
    return operation.document()


def list_operations(state: ProjectState, call: Call, _now: datetime) -> Document:
    """Return a page of one zone's operations, those of the system included."""
    documents = [operation.document() for operation in state.operations if operation.zone == call.zone]
    return list_document("compute#operationList", call, page_of(documents, call.query, name_of))


def get_disk(state: ProjectState, call: Call, _now: datetime) -> Document:
    """Return one disk."""
    return _find_disk(state, call).document()


def list_disks(state: ProjectState, call: Call, _now: datetime) -> Document:
    """Return a page of one zone's disks."""
    documents = [disk.document() for disk in state.disks if disk.zone == call.zone]
    return list_document("compute#diskList", call, page_of(documents, call.query, name_of))


def delete_disk(state: ProjectState, call: Call, now: datetime) -> Document:
    """Begin to remove a disk that no machine holds."""
    if repeated := state.repeated(call, now):
        return repeated.document()
    disk = _find_disk(state, call)
    if disk.user:
        raise errors.in_use(disk.path, disk.user)
    operation = state.operations.open(
        project=state.project,
        zone=disk.zone,
        kind="delete",
        target=disk.path,
        target_id=disk.id,
        user=state.user_of(call),
        now=now,
        request_id=call.query.get("requestId", ""),
    )

    def remove(at: datetime) -> None:
        state.disks.remove(disk.zone, disk.name)
        state.operations.finish(operation.name, at)

    state.agenda.at(now + state.timings.remove, remove)
    state.remember(call, operation, now)
    return operation.document()


def get_region(state: ProjectState, call: Call, _now: datetime) -> Document:
    """Return a region with its zones and quotas."""
    region = call.parts["region"]
    base = f"{API}/projects/{state.project}"
    if region not in state.catalogue.regions:
        raise errors.not_found(f"projects/{state.project}/regions/{region}")
    return {
        "kind": "compute#region",
        "name": region,
        "status": "UP",
        "zones": [f"{base}/zones/{zone}" for zone in state.catalogue.regions[region]],
        "quotas": state.quotas.regional_rows(region, state.orders()),
        "selfLink": f"{base}/regions/{region}",
    }


def get_project(state: ProjectState, _call: Call, _now: datetime) -> Document:
    """Return the project with its global quotas."""
    return {
        "kind": "compute#project",
        "name": state.project,
        "quotas": state.quotas.project_rows(state.orders()),
        "selfLink": f"{API}/projects/{state.project}",
    }


def list_zones(state: ProjectState, call: Call, _now: datetime) -> Document:
    """Return a page of the zones there are."""
    base = f"{API}/projects/{state.project}"
    documents = [
        {"kind": "compute#zone", "name": zone, "status": "UP", "region": f"{base}/regions/{region}"}
        for region, zones in state.catalogue.regions.items()
        for zone in zones
    ]
    return list_document("compute#zoneList", call, page_of(documents, call.query, name_of))


def _find_disk(state: ProjectState, call: Call) -> Disk:
    disk = state.disks.get(call.zone, call.name)
    if disk is None:
        raise errors.not_found(f"projects/{state.project}/zones/{call.zone}/disks/{call.name}")
    return disk


METHODS: Mapping[str, Method] = {
    "compute.zoneOperations.get": get_operation,
    "compute.zoneOperations.list": list_operations,
    "compute.disks.get": get_disk,
    "compute.disks.list": list_disks,
    "compute.disks.delete": delete_disk,
    "compute.regions.get": get_region,
    "compute.projects.get": get_project,
    "compute.zones.list": list_zones,
}

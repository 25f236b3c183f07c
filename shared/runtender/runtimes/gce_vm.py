"""The runtime `gce`: one container on one Compute Engine VM. Nouns to API calls, API answers to observations.

Who a VM is says its label `sf-nonce`, not its name: names are unique per zone only, and a placement that comes back to a
zone uses the name again. What cannot be read is no observation (None); only a 404 says that something is absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from runtender.capacity.classify import classify_http, classify_operation
from runtender.ids import disk_name
from runtender.model import Job, Resource, ResourceKind, Verdict
from runtender.observed import (
    Absent,
    Accepted,
    CreateAnswer,
    DeleteAnswer,
    Fate,
    NameTaken,
    OperationSeen,
    Sight,
    Unclear,
)
from runtender.ports import ApiAnswer, ApiRequest, FleetPage, Remain
from runtender.runtimes.gce_answers import instance_id, read_console, read_fate, read_fleet, read_sight, text
from runtender.runtimes.gce_instance import (
    DISK_KIND,
    RUNTIME,
    instance_body,
    plan_json,
    probe_handle,
    resource_path,
)
from runtender.runtimes.gce_script import startup_script
from runtender.settings import Settings

METHODS = (
    "compute.disks.delete",
    "compute.disks.get",
    "compute.instances.aggregatedList",
    "compute.instances.delete",
    "compute.instances.get",
    "compute.instances.getSerialPortOutput",
    "compute.instances.insert",
    "compute.zoneOperations.get",
    "compute.zoneOperations.list",
)
"""Every API method this runtime calls: what a plane with this runtime needs permission for."""

# A VM's metadata carries its whole startup script, which no look needs.
_SEEN_FIELDS = "id,name,status,zone,labels,creationTimestamp,lastStopTimestamp"
_FLEET_FIELDS = (
    f"nextPageToken,unreachables,warning(code),items/*/warning(code),items/*/instances({_SEEN_FIELDS})"
)
_PAGE_SIZE = "500"
_CONSOLE_PORT = "1"


class GceVm:
    """Compute Engine VMs as a `Runtime` (see `ports.Runtime` for each method). A row says all that there is to say of a VM."""

    name = RUNTIME
    kind = ResourceKind.VM
    page_key = "pageToken"

    def create(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        job = replace(job, plan=job.plan.at(job.placement_of(row)))
        script = startup_script(job, row, settings)
        return ApiRequest(
            method_id="compute.instances.insert",
            verb="POST",
            path=_zonal(row, settings, "instances"),
            # A repeat of the same try is answered with the same operation instead of a second VM.
            query={"requestId": row.request_id},
            body=instance_body(
                job, row, plane_id=settings.plane_id, startup_script=script, kms_key=settings.kms_key
            ),
            creates=True,
        )

    def created(self, answer: ApiAnswer) -> CreateAnswer:
        if answer.ok:
            return Accepted(operation=text(answer.body, "name"), target_id=text(answer.body, "targetId"))
        if answer.status == 409:
            return NameTaken()
        refusal = classify_http(answer)
        # A stock-out is one under a 503 as well, because its code says that nothing was made. A 408 says nothing.
        if answer.status != 408 and (400 <= answer.status < 500 or refusal.verdict is not Verdict.RETRY):
            return refusal
        return Unclear(detail=f"HTTP {answer.status}: {refusal.message}")

    def describe(self, job: Job, row: Resource, settings: Settings) -> Mapping[str, Any]:
        placement = job.placement_of(row)
        plan = job.plan.at(placement)
        return {
            "gce_instance": plan_json(plan, placement, settings.project),
            "probe_handle": probe_handle(plan, placement, settings.project),
        }

    def operation(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        return ApiRequest(
            method_id="compute.zoneOperations.get",
            verb="GET",
            path=_zonal(row, settings, f"operations/{row.operation}"),
        )

    def operated(self, answer: ApiAnswer) -> OperationSeen | None:
        if answer.status == 404:
            return OperationSeen(done=True)
        if not answer.ok:
            return None
        done = answer.body.get("status") == "DONE"
        failed = done and bool(answer.body.get("error"))
        return OperationSeen(
            done=done,
            target_id=text(answer.body, "targetId"),
            refusal=classify_operation(answer.body) if failed else None,
        )

    def look(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        return ApiRequest(
            method_id="compute.instances.get",
            verb="GET",
            path=_instance(row, settings),
            query={"fields": _SEEN_FIELDS},
        )

    def looked(self, answer: ApiAnswer) -> Sight | None:
        if answer.status == 404:
            return Absent()
        return read_sight(answer.body) if answer.ok else None

    def delete(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        return ApiRequest(method_id="compute.instances.delete", verb="DELETE", path=_instance(row, settings))

    def deleted(self, answer: ApiAnswer) -> DeleteAnswer:
        if answer.ok:
            return DeleteAnswer(accepted=True)
        if answer.status == 404:
            return DeleteAnswer(gone=True)
        return DeleteAnswer(detail=f"HTTP {answer.status}: {classify_http(answer).message}")

    def remains(self, job: Job, row: Resource, settings: Settings) -> tuple[Remain, ...]:
        disk = disk_name(row.name, row.nonce)
        path = _zonal(row, settings, f"disks/{disk}")
        return (
            Remain(
                kind=DISK_KIND,
                name=disk,
                look=ApiRequest(
                    method_id="compute.disks.get", verb="GET", path=path, query={"fields": "name,labels"}
                ),
                delete=ApiRequest(method_id="compute.disks.delete", verb="DELETE", path=path),
            ),
        )

    def fate(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        return ApiRequest(
            method_id="compute.zoneOperations.list",
            verb="GET",
            path=_zonal(row, settings, "operations"),
            query={"filter": _of_target(row, settings), "maxResults": _PAGE_SIZE},
        )

    def fated(self, row: Resource, answers: Sequence[ApiAnswer]) -> Fate | None:
        return read_fate(row, [answer.body if answer.ok else None for answer in answers])

    def serial(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        return ApiRequest(
            method_id="compute.instances.getSerialPortOutput",
            verb="GET",
            path=f"{_instance(row, settings)}/serialPort",
            query={"port": _CONSOLE_PORT},
        )

    def last_words(self, answer: ApiAnswer, row: Resource) -> bytes | None:
        return read_console(text(answer.body, "contents") or "", row.nonce) if answer.ok else None

    def fleets(self, settings: Settings, clusters: Sequence[str]) -> tuple[ApiRequest, ...]:
        mine = f'labels.sf-plane="{settings.plane_id}" AND labels.sf-kind="{ResourceKind.VM}"'
        whole_project = ApiRequest(
            method_id="compute.instances.aggregatedList",
            verb="GET",
            path=f"/projects/{settings.project}/aggregated/instances",
            query={"filter": mine, "maxResults": _PAGE_SIZE, "fields": _FLEET_FIELDS},
        )
        return (whole_project,)

    def fleet_page(self, answer: ApiAnswer) -> FleetPage | None:
        return read_fleet(answer.body) if answer.ok else None


def _zonal(row: Resource, settings: Settings, rest: str) -> str:
    return f"/projects/{settings.project}/zones/{row.location}/{rest}"


def _instance(row: Resource, settings: Settings) -> str:
    return f"/{resource_path(settings.project, row.location, row.name)}"


def _of_target(row: Resource, settings: Settings) -> str:
    """Return the filter for the records of one VM: by its id where it is known."""
    if target := instance_id(row):
        return f"targetId={target}"
    return f'targetLink="https://www.googleapis.com/compute/v1{_instance(row, settings)}"'

"""The GCE runtime: from nouns to API requests, and from API answers to what was observed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import urlencode

import pytest

from runtender.ids import disk_name
from runtender.local.compute.core import ComputeCore
from runtender.local.http import HttpRequest
from runtender.model import Job, Placement, Reason, Resource
from runtender.observed import Absent, Accepted, DeleteAnswer, LiveState, Present
from runtender.ports import ApiAnswer, ApiRequest
from runtender.runtimes.gce_vm import METHODS, GceVm
from runtender.settings import Settings

GCE = GceVm()
# A row says all that a look at a VM needs.
JOB = cast("Job", None)
STANDARD_PARAMETERS = frozenset({"fields"})


@pytest.fixture
def requests(
    a_job: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings
) -> list[ApiRequest]:
    """Every call that the runtime describes."""
    row = a_row(operation="operation-1", target_id="1234")
    (disk,) = GCE.remains(JOB, row, settings)
    return [
        GCE.create(a_job(), row, settings),
        GCE.operation(JOB, row, settings),
        GCE.look(JOB, row, settings),
        GCE.delete(JOB, row, settings),
        disk.look,
        disk.delete,
        GCE.fate(JOB, row, settings),
        GCE.serial(JOB, row, settings),
        *GCE.fleets(settings, ()),
    ]


def test_the_list_of_methods_is_what_is_called(requests: list[ApiRequest]) -> None:
    assert sorted(request.method_id for request in requests) == list(METHODS)


def _methods(part: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for method in part.get("methods", {}).values():
        yield method["id"], method
    for inner in part.get("resources", {}).values():
        yield from _methods(inner)


def test_every_call_is_one_that_google_publishes(
    requests: list[ApiRequest], compute_api: Mapping[str, Any]
) -> None:
    published = dict(_methods(compute_api))
    for request in requests:
        method = published[request.method_id]
        assert request.verb == method["httpMethod"]
        assert re.fullmatch("/" + re.sub(r"\{\w+\}", "[^/]+", method["path"]), request.path), request.path
        assert set(request.query) <= set(method["parameters"]) | STANDARD_PARAMETERS
        assert request.creates == (request.method_id == "compute.instances.insert")


def test_a_repeated_create_is_the_same_call(
    a_job: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings
) -> None:
    first = GCE.create(a_job(), a_row(), settings)
    assert GCE.create(a_job(), a_row(since=a_row().since + timedelta(minutes=2)), settings) == first
    assert first.query == {"requestId": a_row().request_id}


def test_the_startup_script_is_in_the_body(
    a_job: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings
) -> None:
    body = GCE.create(a_job(), a_row(), settings).body
    assert body is not None
    assert body["metadata"]["items"][0]["value"].startswith("#!/bin/bash\n")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param({"target_id": "77", "uid": "77"}, "targetId=77", id="by the operation's target"),
        pytest.param({"uid": "77"}, "targetId=77", id="by the id that was seen"),
        pytest.param(
            {"name": "n"},
            'targetLink="https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-b/instances/n"',
            id="by its name",
        ),
    ],
)
def test_a_vms_records_are_asked_for_by_its_id_where_it_is_known(
    a_row: Callable[..., Resource], settings: Settings, row: dict[str, Any], expected: str
) -> None:
    assert GCE.fate(JOB, a_row(**row), settings).query["filter"] == expected


def test_the_row_covers_the_boot_disk(a_row: Callable[..., Resource], settings: Settings) -> None:
    row = a_row()
    (disk,) = GCE.remains(JOB, row, settings)
    assert (disk.kind, disk.name) == ("disk", disk_name(row.name, row.nonce))
    assert disk.delete.path == f"/projects/p/zones/us-central1-b/disks/{disk.name}"


class Region:
    """A simulated Compute Engine that the runtime's calls are sent to, with a clock that the test moves."""

    def __init__(self) -> None:
        self.core = ComputeCore(project="p")
        self.now = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)

    def send(self, request: ApiRequest) -> ApiAnswer:
        body = b"" if request.body is None else json.dumps(request.body).encode()
        url = f"/compute/v1{request.path}?{urlencode(request.query)}"
        answer = self.core.handle(HttpRequest.to_url(request.verb, url, headers={}, body=body), self.now)
        return ApiAnswer(status=answer.status, body=answer.json() if answer.body else {})

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.core.advance(self.now)


@pytest.fixture
def region() -> Region:
    return Region()


@pytest.fixture
def a_running_vm(
    region: Region, a_job: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings
) -> Resource:
    """Return the row of a VM that was created and is running."""
    job = a_job(placements=(Placement(region="us-central1", zone="us-central1-b"),), spot=True)
    row = a_row(since=region.now)
    accepted = GCE.created(region.send(GCE.create(job, row, settings)))
    assert isinstance(accepted, Accepted)
    row = replace(row, operation=accepted.operation, target_id=accepted.target_id)
    region.later(300)
    return row


def test_a_created_vm_is_seen_as_ours(region: Region, a_running_vm: Resource, settings: Settings) -> None:
    row = a_running_vm
    operated = GCE.operated(region.send(GCE.operation(JOB, row, settings)))
    assert operated is not None
    assert (operated.done, operated.refusal, operated.target_id) == (True, None, row.target_id)
    sight = GCE.looked(region.send(GCE.look(JOB, row, settings)))
    assert isinstance(sight, Present)
    assert (sight.state, sight.nonce, sight.plane, sight.uid) == (
        LiveState.RUNNING,
        row.nonce,
        "main",
        row.target_id,
    )
    page = GCE.fleet_page(region.send(*GCE.fleets(settings, ())))
    assert page is not None
    assert [(worker.name, worker.location, worker.sight) for worker in page.workers] == [
        (row.name, row.location, sight)
    ]
    assert not page.partial


def test_another_planes_fleet_does_not_show_it(
    region: Region, a_running_vm: Resource, settings: Settings
) -> None:
    page = GCE.fleet_page(region.send(*GCE.fleets(replace(settings, plane_id="other"), ())))
    assert page is not None
    assert page.workers == ()


def test_what_is_deleted_is_gone_with_its_disk(
    region: Region, a_running_vm: Resource, settings: Settings
) -> None:
    row = a_running_vm
    (disk,) = GCE.remains(JOB, row, settings)
    assert region.send(disk.look).ok
    assert GCE.deleted(region.send(GCE.delete(JOB, row, settings))) == DeleteAnswer(accepted=True)
    region.later(600)
    assert GCE.looked(region.send(GCE.look(JOB, row, settings))) == Absent()
    assert region.send(disk.look).status == 404
    assert GCE.deleted(region.send(GCE.delete(JOB, row, settings))) == DeleteAnswer(gone=True)
    fate = GCE.fated(row, [region.send(GCE.fate(JOB, row, settings))])
    assert fate is not None
    assert (fate.reason, fate.deleted) == (None, True)


def test_a_preempted_vms_records_say_so(region: Region, a_running_vm: Resource, settings: Settings) -> None:
    row = a_running_vm
    assert region.core.preempt(row.location, row.name, region.now)
    region.later(600)
    fate = GCE.fated(row, [region.send(GCE.fate(JOB, row, settings))])
    assert fate is not None
    assert fate.reason is Reason.PREEMPTED


def test_a_vm_whose_time_is_up_is_deleted_by_the_platform(
    region: Region, a_running_vm: Resource, settings: Settings
) -> None:
    region.later(3 * 3600)
    assert GCE.looked(region.send(GCE.look(JOB, a_running_vm, settings))) == Absent()
    fate = GCE.fated(a_running_vm, [region.send(GCE.fate(JOB, a_running_vm, settings))])
    assert fate is not None
    assert fate.reason is Reason.TTL_EXPIRED


def test_the_console_gives_the_last_words_back(
    region: Region, a_running_vm: Resource, settings: Settings
) -> None:
    row = a_running_vm
    assert row.target_id is not None
    region.core.print_serial(
        row.target_id, f"boot\nSF-MARKER {row.nonce} eyJleGl0X2NvZGUiOiAzfQ==\n".encode()
    )
    serial = GCE.serial(JOB, row, settings)
    assert serial is not None
    assert GCE.last_words(region.send(serial), row) == b'{"exit_code": 3}'

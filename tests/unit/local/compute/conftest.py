"""A simulated project with a hand on its clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runtender.local.compute.core import ComputeCore
from runtender.local.compute.events import Event
from runtender.local.compute.schema import installed_schemas
from runtender.local.compute.stock import Stock
from runtender.local.http import HttpRequest
from runtender.local.scenario import Stockout

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ZONE = "us-central1-a"
REQUEST_ID = "7d1bb2ad-9a6f-5b0e-8d0c-3a1c5f3c6e5{}"


def an_insert(
    name: str = "sf-vm",
    *,
    zone: str = ZONE,
    machine: str = "n2-standard-8",
    spot: bool = False,
    **changes: Any,
) -> dict[str, Any]:
    """Return an insert body as the plane sends it; `changes` replace top-level fields, None removes them."""
    body: dict[str, Any] = {
        "name": name,
        "machineType": f"zones/{zone}/machineTypes/{machine}",
        "labels": {"sf-plane": "main", "sf-kind": "vm", "sf-placement": "0", "sf-attempt": "1"},
        "scheduling": {
            "automaticRestart": False,
            "onHostMaintenance": "TERMINATE",
            "maxRunDuration": {"seconds": "3600"},
            "instanceTerminationAction": "DELETE",
            **({"provisioningModel": "SPOT"} if spot else {}),
        },
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {
                    "sourceImage": "projects/cos-cloud/global/images/family/cos-stable",
                    "diskSizeGb": "100",
                    "diskType": f"zones/{zone}/diskTypes/pd-balanced",
                    "diskName": f"{name}-0123abcd",
                    "labels": {"sf-kind": "disk"},
                },
            }
        ],
        "networkInterfaces": [{"subnetwork": "projects/p/regions/us-central1/subnetworks/default"}],
        "metadata": {"items": [{"key": "startup-script", "value": "#!/bin/bash\ntrue\n"}]},
        "serviceAccounts": [
            {
                "email": "worker@p.iam.gserviceaccount.com",
                "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
            }
        ],
    }
    body.update(changes)
    return {key: value for key, value in body.items() if value is not None}


@dataclass
class Project:
    """A core, a clock and the calls of a client."""

    core: ComputeCore
    now: datetime = START
    events: list[Event] = field(default_factory=list)

    def call(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, dict[str, Any]]:
        request = HttpRequest(
            method=method,
            path=f"/compute/v1/projects/p/{path}",
            query=query,
            body=b"" if body is None else json.dumps(body).encode(),
        )
        answer = self.core.handle(request, self.now)
        return answer.status, answer.json()

    def insert(self, *args: Any, request: int | None = None, **changes: Any) -> tuple[int, dict[str, Any]]:
        query = {} if request is None else {"requestId": REQUEST_ID.format(request)}
        zone = changes.get("zone", ZONE)
        return self.call("POST", f"zones/{zone}/instances", an_insert(*args, **changes), **query)

    def get(self, name: str = "sf-vm", zone: str = ZONE) -> tuple[int, dict[str, Any]]:
        return self.call("GET", f"zones/{zone}/instances/{name}")

    def delete(self, name: str = "sf-vm", zone: str = ZONE, **query: str) -> tuple[int, dict[str, Any]]:
        return self.call("DELETE", f"zones/{zone}/instances/{name}", **query)

    def status(self, name: str = "sf-vm", zone: str = ZONE) -> str:
        code, body = self.get(name, zone)
        return str(body["status"]) if code == 200 else str(code)

    def operation(self, document: dict[str, Any], zone: str = ZONE) -> dict[str, Any]:
        return self.call("GET", f"zones/{zone}/operations/{document['name']}")[1]

    def history(self, target_id: str, zone: str = ZONE) -> list[str]:
        """Return the types of the operations on one machine, in order."""
        _, body = self.call("GET", f"zones/{zone}/operations", filter=f"targetId={target_id}")
        return [operation["operationType"] for operation in body.get("items", [])]

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.events += self.core.advance(self.now)


@pytest.fixture
def a_project() -> Callable[..., Project]:
    """Make a project; `stockouts` and all that a core takes may be given."""

    def make(*, stockouts: tuple[Stockout, ...] = (), **options: Any) -> Project:
        stock = Stock(stockouts, opened_at=START, scale=options.pop("scale", 1.0))
        return Project(ComputeCore(project="p", stock=stock, schemas=installed_schemas(), **options))

    return make


@pytest.fixture
def project(a_project: Callable[..., Project]) -> Project:
    """A project in fair weather."""
    return a_project()


@pytest.fixture
def insert_body() -> dict[str, Any]:
    """An insert body to be spoilt."""
    return an_insert()

"""Zone operations: what was asked for, by whom, and how it ended. The record outlives the machine it is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from runtender.local.compute.errors import OperationError

API = "https://www.googleapis.com/compute/v1"
SYSTEM = "system"
"""The user of operations that nobody asked for."""

# Google writes Pacific time; a reader that takes every time for UTC is off by hours here as there.
_PACIFIC = timezone(timedelta(hours=-8))
_KEPT = 5000
"""The oldest finished records go beyond this number: a bound on memory, far above what one local cloud makes."""


def timestamp(moment: datetime) -> str:
    """Return a time as Compute Engine writes it."""
    return moment.astimezone(_PACIFIC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One zone operation. `target` is the path of the resource, `target_id` its numeric id."""

    id: str
    name: str
    project: str
    zone: str
    type: str
    target: str
    target_id: str
    user: str
    status: str = "RUNNING"
    inserted_at: datetime
    ended_at: datetime | None = None
    error: OperationError | None = None
    request_id: str = ""
    note: str = ""

    def document(self) -> dict[str, Any]:
        """Return the operation as the API shows it."""
        zone_url = f"{API}/projects/{self.project}/zones/{self.zone}"
        document: dict[str, Any] = {
            "kind": "compute#operation",
            "id": self.id,
            "name": self.name,
            "zone": zone_url,
            "operationType": self.type,
            "targetLink": f"{API}/{self.target}",
            "targetId": self.target_id,
            "status": self.status,
            "user": self.user,
            "progress": 100 if self.ended_at else 0,
            "insertTime": timestamp(self.inserted_at),
            "startTime": timestamp(self.inserted_at),
            "selfLink": f"{zone_url}/operations/{self.name}",
        }
        if self.ended_at:
            document["endTime"] = timestamp(self.ended_at)
        if self.request_id:
            document["clientOperationId"] = self.request_id
        if self.note:
            document["statusMessage"] = self.note
        if self.error:
            document["error"] = self.error.document()
            document["httpErrorStatusCode"] = self.error.status
            document["httpErrorMessage"] = self.error.phrase
        return document


class Operations:
    """The record of a project's operations, in the order they came."""

    def __init__(self) -> None:
        self._by_name: dict[str, Operation] = {}
        self._opened = 0

    def open(
        self, *, project: str, zone: str, kind: str, target: str, target_id: str, user: str, now: datetime, request_id: str = ""
    ) -> Operation:  # fmt: skip
        """Begin an operation."""
        self._opened += 1
        origin = "systemevent" if user == SYSTEM else "operation"
        operation = Operation(
            id=str(2_000_000_000_000_000_000 + self._opened),
            name=f"{origin}-{int(now.timestamp() * 1000)}-{self._opened:08x}",
            project=project,
            zone=zone,
            type=kind,
            target=target,
            target_id=target_id,
            user=user,
            inserted_at=now,
            request_id=request_id,
        )
        self._by_name[operation.name] = operation
        self._forget()
        return operation

    def finish(
        self, name: str, now: datetime, *, error: OperationError | None = None, note: str = ""
    ) -> Operation:
        """End an operation. One that has ended already stays as it is."""
        operation = self._by_name[name]
        if operation.ended_at is None:
            operation = replace(operation, status="DONE", ended_at=now, error=error, note=note)
            self._by_name[name] = operation
        return operation

    def get(self, zone: str, name: str) -> Operation | None:
        """Look an operation up by its name or numeric id."""
        operation = self._by_name.get(name)
        if operation is None:
            operation = next((one for one in self._by_name.values() if one.id == name), None)
        return operation if operation is not None and operation.zone == zone else None

    def __iter__(self) -> Iterator[Operation]:
        return iter(tuple(self._by_name.values()))

    def _forget(self) -> None:
        surplus = len(self._by_name) - _KEPT
        if surplus > 0:
            ended = [name for name, operation in self._by_name.items() if operation.ended_at is not None]
            for name in ended[:surplus]:
                del self._by_name[name]

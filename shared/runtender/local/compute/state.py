"""All that one simulated project holds, for the methods of the API to read and change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from runtender.local.compute.agenda import Agenda
from runtender.local.compute.catalogue import Catalogue
from runtender.local.compute.disks import Disks
from runtender.local.compute.errors import invalid_value
from runtender.local.compute.instances import Order
from runtender.local.compute.lifecycle import Lifecycle
from runtender.local.compute.listing import Document
from runtender.local.compute.operations import Operation, Operations
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.routes import Call
from runtender.local.compute.schema import Schemas
from runtender.local.compute.serial import Console
from runtender.local.compute.stock import Stock
from runtender.local.compute.timings import Timings

GUEST_TOKEN = "local-worker-"  # noqa: S105
"""What the metadata server's tokens begin with; the machine's name follows."""

_NO_UUID = UUID(int=0)


@dataclass(kw_only=True, slots=True)
class ProjectState:
    """A project's machines, disks, operations and consoles, with the rules they live by.

    `unreachable` are zones that do not answer lists.
    """

    project: str
    catalogue: Catalogue
    timings: Timings
    quotas: Quotas
    stock: Stock | None
    schemas: Schemas | None
    agenda: Agenda = field(default_factory=Agenda)
    operations: Operations = field(default_factory=Operations)
    disks: Disks = field(default_factory=Disks)
    machines: Lifecycle = field(init=False)
    consoles: dict[str, Console] = field(default_factory=dict)
    unreachable: frozenset[str] = frozenset()
    _requests: dict[tuple[str, str, str], tuple[Operation, datetime]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.machines = Lifecycle(self.timings, self.agenda, self.operations, self.disks)

    def orders(self) -> Iterator[Order]:
        """Go through what the machines that are there were ordered as."""
        return (instance.order for instance in self.machines.instances)

    def user_of(self, call: Call) -> str:
        """Return who is calling, as operations name them: a machine's identity, or the plane's."""
        for instance in self.machines.instances:
            token = f"Bearer {GUEST_TOKEN}{instance.order.name}"
            if call.request.headers.get("Authorization", "") == token:
                return instance.order.service_account or "default"
        return f"runtender@{self.project}.iam.gserviceaccount.com"

    def repeated(self, call: Call, now: datetime) -> Operation | None:
        """Return the operation that an earlier call with the same `requestId` made, as it stands now.

        That it failed, or that what it made is gone again, changes nothing. Raises `ApiError` for a `requestId` that
        is no UUID, or zero.
        """
        request_id = call.query.get("requestId", "")
        if not request_id:
            return None
        if not _is_uuid(request_id):
            raise invalid_value("requestId", request_id, "Must be a valid non-zero UUID.")
        self._forget_requests(now)
        made = self._requests.get((call.method_id, call.zone, request_id))
        return self.operations.get(call.zone, made[0].name) if made else None

    def remember(self, call: Call, operation: Operation, now: datetime) -> None:
        """Keep the operation that this call made under its `requestId`, if it has one."""
        if request_id := call.query.get("requestId", ""):
            self._requests[call.method_id, call.zone, request_id] = (operation, now)

    def _forget_requests(self, now: datetime) -> None:
        expired = [key for key, (_, at) in self._requests.items() if now - at > self.timings.request_memory]
        for key in expired:
            del self._requests[key]


Method = Callable[[ProjectState, Call, datetime], Document]
"""A method of the API; raises `ApiError` for a request that it refuses."""


def _is_uuid(text: str) -> bool:
    try:
        return UUID(text) != _NO_UUID
    except ValueError:
        return False

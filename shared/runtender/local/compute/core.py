"""The simulated Compute Engine: requests in, answers out, and events for whoever runs the machines.

It has no transport and no clock. `handle` answers one request at a moment that the caller names, `advance` lets the time
between pass and returns what happened to machines; a served cloud drives it with real time, a simulation with its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from runtender.local.compute import errors, instance_methods, zone_methods
from runtender.local.compute.catalogue import Catalogue
from runtender.local.compute.errors import ApiError
from runtender.local.compute.events import Event, Removed
from runtender.local.compute.fields import parse_fields, select
from runtender.local.compute.instances import Instance, Status
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.routes import Call, find_call
from runtender.local.compute.schema import Schemas
from runtender.local.compute.serial import Console
from runtender.local.compute.state import Method, ProjectState
from runtender.local.compute.stock import Stock
from runtender.local.compute.timings import Timings
from runtender.local.http import Faults, HttpRequest, HttpResponse, google_error, json_response, no_faults

_METHODS: Mapping[str, Method] = {**instance_methods.METHODS, **zone_methods.METHODS}


@dataclass(frozen=True, kw_only=True, slots=True)
class Leftovers:
    """What is still there, by name. Nothing here means that a run has cleaned up."""

    instances: tuple[str, ...]
    disks: tuple[str, ...]
    operations: tuple[str, ...]


class ComputeCore:
    """One project's Compute Engine. Not safe for threads: whoever serves it lets one caller in at a time."""

    def __init__(
        self,
        *,
        project: str,
        catalogue: Catalogue | None = None,
        timings: Timings | None = None,
        quotas: Quotas | None = None,
        stock: Stock | None = None,
        schemas: Schemas | None = None,
        faults: Faults = no_faults,
    ) -> None:
        self._state = ProjectState(
            project=project,
            catalogue=catalogue or Catalogue(),
            timings=timings or Timings(),
            quotas=quotas or Quotas(),
            stock=stock,
            schemas=schemas,
        )
        self._faults = faults
        self._counts: Counter[str] = Counter()

    def handle(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer one request as Compute Engine would at `now`."""
        self._state.agenda.run(now)
        call = find_call(request)
        if call is None:
            return _no_method(request)
        self._counts[call.method_id] += 1
        fault = self._faults(call.method_id, request)
        if fault is None:
            return self._answer(call, now)
        if fault.applied:
            self._answer(call, now)
        return fault.answer

    def apply(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer one request that no client sent: uncounted, and undisturbed by faults."""
        self._state.agenda.run(now)
        call = find_call(request)
        return _no_method(request) if call is None else self._answer(call, now)

    def advance(self, now: datetime) -> tuple[Event, ...]:
        """Let everything due at `now` happen; return all events since the last call, also those of requests."""
        self._state.agenda.run(now)
        events = self._state.machines.drain()
        for event in events:
            if isinstance(event, Removed):
                self._state.consoles.pop(event.instance_id, None)
        return events

    def next_due(self) -> datetime | None:
        """Return when something will happen by itself; None when nothing will."""
        return self._state.agenda.next_due()

    def print_serial(self, instance_id: str, chunk: bytes) -> None:
        """Print on a machine's console. What a machine that is gone prints, nobody sees."""
        if any(instance.id == instance_id for instance in self._state.machines.instances):
            self._state.consoles.setdefault(instance_id, Console()).write(chunk)

    def guest_off(self, instance_id: str, boot: int, now: datetime) -> None:
        """Learn that a machine has gone down since `boot`: it was told to and is done, or switched itself off."""
        self._state.agenda.run(now)
        self._state.machines.guest_off(instance_id, boot, now)

    def preempt(self, zone: str, name: str, now: datetime) -> bool:
        """Preempt a running machine; False when there is none."""
        return self._strike(zone, name, now, self._state.machines.preempt)

    def host_error(self, zone: str, name: str, now: datetime) -> bool:
        """Let the host of a running machine fail; False when there is none."""
        return self._strike(zone, name, now, self._state.machines.host_error)

    def lose(self, zone: str, name: str, now: datetime) -> bool:
        """Let a running machine vanish without a record of it; False when there is none."""
        return self._strike(zone, name, now, self._state.machines.lose)

    def silence(self, zones: Iterable[str]) -> None:
        """Let these zones, and no others, be missing from lists over the project."""
        self._state.unreachable = frozenset(zones)

    def counts(self) -> dict[str, int]:
        """Return how often each method was called."""
        return dict(self._counts)

    def machines(self) -> tuple[Instance, ...]:
        """Return the machines that are there, as they are and not as calls show them."""
        return self._state.machines.instances

    def inserted(self) -> tuple[str, ...]:
        """Return the ids of all machines whose insert was ever accepted, in order, whatever the caller heard."""
        return tuple(one.target_id for one in self._state.operations if one.type == "insert")

    def leftovers(self, apart_from: Container[str] = ()) -> Leftovers:
        """Return what is still there, apart from machines of these ids and their disks."""
        state = self._state
        spared = {machine.order.path for machine in self.machines() if machine.id in apart_from}
        return Leftovers(
            instances=tuple(order.name for order in state.orders() if order.path not in spared),
            disks=tuple(disk.name for disk in state.disks if disk.user not in spared),
            operations=tuple(operation.name for operation in state.operations if operation.ended_at is None),
        )

    def _answer(self, call: Call, now: datetime) -> HttpResponse:
        try:
            self._check(call)
            fields = parse_fields(call.query["fields"]) if "fields" in call.query else {}
            document = _METHODS[call.method_id](self._state, call, now)
            return json_response(200, select(fields, document))
        except ApiError as error:
            return error.response

    def _check(self, call: Call) -> None:
        if self._state.schemas:
            self._state.schemas.check_query(call.method_id, call.query)
        project = call.parts["project"]
        if project != self._state.project:
            raise errors.not_found(f"projects/{project}")
        zone = call.parts.get("zone")
        if zone is not None and not self._state.catalogue.has_zone(zone):
            raise errors.invalid_value("zone", zone, "Unknown zone.")

    def _strike(
        self, zone: str, name: str, now: datetime, blow: Callable[[Instance, datetime], None]
    ) -> bool:
        self._state.agenda.run(now)
        instance = self._state.machines.find(zone, name)
        if instance is None or instance.status is not Status.RUNNING:
            return False
        blow(instance, now)
        return True


def _no_method(request: HttpRequest) -> HttpResponse:
    return google_error(404, "notFound", f"no simulated method is {request.method} {request.path}")

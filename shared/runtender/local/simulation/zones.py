"""Compute Engine in a simulated world: its zones with their machines, which are played, and an eye on every call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import count

from runtender.local.compute.events import Booted, Event
from runtender.local.compute.instances import Instance, Status
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.stock import Stock
from runtender.local.http import Fault, HttpRequest, HttpResponse
from runtender.local.scenario.strangers import stranger_insert
from runtender.local.simulation.compute import OpenCompute
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.machines import Machines
from runtender.local.simulation.outside import Outside
from runtender.local.simulation.records import require
from runtender.local.simulation.weather import INSERT

MACHINES = "machines"
"""The fleet list of machines, as rules name it."""
WORKER = "Bearer local-worker-"
"""How the token of a worker begins."""

_STRANGER = "stranger"
_FLEET_PATH = "/aggregated/instances"
_COULD_RUN = {Status.PROVISIONING, Status.STAGING, Status.RUNNING}


class Zones:
    """All machines. `strangers` are the ids of those that somebody else has made."""

    def __init__(
        self,
        outside: Outside,
        behaviour: Callable[[Booted], Behaviour],
        *,
        stock: Stock | None,
        quotas: Quotas | None,
    ) -> None:
        project = outside.settings.project
        self.core = OpenCompute(project=project, stock=stock, quotas=quotas, faults=self._fault)
        self.strangers: set[str] = set()
        self._outside = outside
        self._guests = Machines(outside.agenda, self, behaviour)
        self._undisturbed = False
        self._numbers = count()

    # --- time

    def next_due(self) -> datetime | None:
        """Return when something will happen by itself."""
        return self.core.next_due()

    def happen(self, now: datetime) -> None:
        """Carry out everything that is due at `now`."""
        # What a machine does on hearing of one event may bring about the next.
        while events := self.core.advance(now):
            for event in events:
                self._tell(event, now)

    def _tell(self, event: Event, now: datetime) -> None:
        self._outside.note(f"machine {event.instance_id[-3:]}: {type(event).__name__}")
        if isinstance(event, Booted) and "startup-script" not in event.metadata:
            self.strangers.add(event.instance_id)
        else:
            self._guests.tell(event, now)

    # --- what machines reach (guests.Surroundings)

    def request(self, machine: str, method: str, url: str, body: bytes = b"") -> HttpResponse:
        return self._outside.request(machine, method, url, body)

    def print_serial(self, instance_id: str, line: bytes) -> None:
        self.core.print_serial(instance_id, line)

    def power_off(self, instance_id: str, boot: int) -> None:
        self.core.guest_off(instance_id, boot, self._outside.clock.time)

    def epoch(self) -> int:
        return self._outside.epoch()

    # --- what the onlooker sees

    def standing(self, nonce: str) -> list[str]:
        """Tell of the machines with this nonce."""
        found = [one for one in self.core.machines() if one.order.labels.get("sf-nonce") == nonce]
        return [f"machine {one.order.name}, {one.status}" for one in found]

    def workers(self) -> Iterable[tuple[str, str, bool]]:
        """Tell of the machines that run or will; a terminal object holds a guest back, or has ended it."""
        for machine in self.core.machines():
            labels = machine.order.labels
            if labels.get("sf-plane") == self._outside.settings.plane_id and machine.status in _COULD_RUN:
                yield labels["sf-key"], labels.get("sf-nonce", ""), True

    def leftovers(self) -> Mapping[str, tuple[str, ...]]:
        """Return what is there of ours, by kind."""
        left = self.core.leftovers()
        ours = tuple(one.order.name for one in self.core.machines() if one.order.labels)
        disks = tuple(name for name in left.disks if not name.startswith(_STRANGER))
        return {"instances": ours, "disks": disks, "operations": left.operations}

    def check_strangers(self) -> None:
        """Check that the machines of others are there."""
        there = {machine.id for machine in self.core.machines()}
        require(self.strangers <= there, "I6", "a stranger's machine is gone")

    # --- what a test or a story does to it

    def calm(self) -> None:
        """End all trouble."""
        self.core.silence(())

    def place_stranger(self, zone: str, name: str) -> None:
        """Let somebody else have a machine of this name."""
        disk = f"{_STRANGER}-{next(self._numbers)}"
        self.apply(stranger_insert(self._outside.settings.project, zone, name, disk=disk))

    def delete_by_hand(self, machine: Instance) -> None:
        """Let a person delete a machine."""
        order = machine.order
        path = f"/compute/v1/projects/{order.project}/zones/{order.zone}/instances/{order.name}"
        self.apply(HttpRequest(method="DELETE", path=path))

    def reboot(self, machine: Instance) -> bool:
        """Let a machine crash and boot again, unseen by the platform; False when it runs no guest."""
        return self._guests.reboot(machine.id, self._outside.clock.time)

    def apply(self, request: HttpRequest) -> HttpResponse:
        """Carry out a call that nobody watches, whatever the weather."""
        before, self._undisturbed = self._undisturbed, True
        try:
            return self.core.handle(request, self._outside.clock.time)
        finally:
            self._undisturbed = before

    # --- calls

    def handle(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer a call by the plane or by a machine."""
        answer = self.core.handle(request, now)
        if request.path.endswith(_FLEET_PATH):
            if answer.status == 200 and b'"unreachables"' not in answer.body:
                self._outside.partial_fleets.discard(MACHINES)
                self._outside.weather.saw_fleet(answer)
            else:
                self._outside.partial_fleets.add(MACHINES)
        if request.method != "GET":
            self._outside.onlooker.check_workers()
        return answer

    def _fault(self, method: str, request: HttpRequest) -> Fault | None:
        if self._undisturbed:
            return None
        onlooker = self._outside.onlooker
        by_worker = request.headers.get("Authorization", "").startswith(WORKER)
        if method == INSERT:
            onlooker.creating(request.json().get("labels", {}))
        elif method == "compute.instances.delete" and not by_worker:
            zone, name = request.segments[5], request.segments[7]
            if machine := self.core.machine(zone, name):
                onlooker.deleting(name, machine.order.labels, MACHINES)
        elif method == "compute.disks.delete" and (labels := self._disk_labels(request)):
            onlooker.deleting_remains("disk", labels)
        return self._outside.fault(method, request, by_worker=by_worker)

    def _disk_labels(self, request: HttpRequest) -> Mapping[str, str]:
        """Return the labels of the disk that a request names; of one that is gone, none."""
        return self.core.disk_labels(request.segments[5], request.segments[7])

"""Compute Engine's core with a window: the onlooker sees machines as they are, not as calls show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from runtender.local.compute.core import ComputeCore
from runtender.local.compute.disks import Disk
from runtender.local.compute.events import Event
from runtender.local.compute.instances import Instance
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.stock import Stock
from runtender.local.http import Faults, HttpRequest, HttpResponse


class OpenCompute(ComputeCore):
    """The simulated Compute Engine, and what is inside."""

    def __init__(self, *, project: str, stock: Stock | None, quotas: Quotas | None, faults: Faults) -> None:
        super().__init__(project=project, stock=stock, quotas=quotas, faults=faults)
        self._kept: dict[str, Disk] = {}

    def machines(self) -> tuple[Instance, ...]:
        """Return the machines that are there."""
        return self._state.machines.instances

    def machine(self, zone: str, name: str) -> Instance | None:
        """Look a machine up."""
        return self._state.machines.find(zone, name)

    def disk_labels(self, zone: str, name: str) -> Mapping[str, str]:
        """Return the labels of a disk; of one that is not there, none."""
        disk = self._state.disks.get(zone, name)
        return disk.labels if disk else {}

    def keep_disk(self, machine: Instance) -> None:
        """Let a machine's boot disk stay when the machine goes, as if somebody had taken the flag off."""
        disk = self._state.disks.get(machine.order.zone, machine.order.boot_disk.name)
        if disk is not None:
            self._kept[machine.id] = disk

    def handle(self, request: HttpRequest, now: datetime) -> HttpResponse:
        answer = super().handle(request, now)
        self._put_back_disks()
        return answer

    def advance(self, now: datetime) -> tuple[Event, ...]:
        events = super().advance(now)
        self._put_back_disks()
        return events

    def _put_back_disks(self) -> None:
        if self._kept:
            there = {machine.id for machine in self.machines()}
            for machine_id in self._kept.keys() - there:
                self._state.disks.put(replace(self._kept.pop(machine_id), user=""))

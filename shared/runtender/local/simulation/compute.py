"""Compute Engine's core with a window: the onlooker sees machines and disks as they are, not as calls show them."""

from __future__ import annotations

from dataclasses import replace

from runtender.local.compute.core import ComputeCore
from runtender.local.compute.disks import Disk
from runtender.local.compute.instances import Instance


class OpenCompute(ComputeCore):
    """The simulated Compute Engine, and what is inside."""

    def machines(self) -> tuple[Instance, ...]:
        """Return the machines that are there."""
        return self._state.machines.instances

    def machine(self, zone: str, name: str) -> Instance | None:
        """Look a machine up."""
        return self._state.machines.find(zone, name)

    def disk_of(self, machine: Instance) -> Disk | None:
        """Return a machine's boot disk."""
        return self._state.disks.get(machine.order.zone, machine.order.boot_disk.name)

    def leave(self, disk: Disk) -> None:
        """Let a disk outlive its machine."""
        self._state.disks.put(replace(disk, user=""))

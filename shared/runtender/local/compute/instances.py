"""The machine's record: what was asked for, where it stands, and how the API shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from runtender.local.compute.catalogue import MachineType, region_of
from runtender.local.compute.events import Booted, StopReason
from runtender.local.compute.operations import API, timestamp


class Status(StrEnum):
    """The states of a machine that the simulation passes through; the API knows a few more."""

    PROVISIONING = "PROVISIONING"
    STAGING = "STAGING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    TERMINATED = "TERMINATED"


@dataclass(frozen=True, kw_only=True, slots=True)
class BootDisk:
    """What the request says of the boot disk."""

    name: str
    size_gb: int
    type: str
    image: str
    labels: Mapping[str, str]
    auto_delete: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """A checked insert request. `body` is what was sent, to be shown again."""

    project: str
    zone: str
    name: str
    body: Mapping[str, Any]
    machine: MachineType
    boot_disk: BootDisk
    accelerator_type: str
    accelerator_count: int
    max_run: timedelta | None

    @property
    def path(self) -> str:
        """The machine's path, as errors name it."""
        return f"projects/{self.project}/zones/{self.zone}/instances/{self.name}"

    @property
    def region(self) -> str:
        """The zone's region."""
        return region_of(self.zone)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels asked for."""
        labels: Mapping[str, str] = self.body.get("labels", {})
        return labels

    @property
    def spot(self) -> bool:
        """True when the machine may be preempted."""
        return bool(
            self._scheduling.get("provisioningModel") == "SPOT" or self._scheduling.get("preemptible")
        )

    @property
    def ends_by_delete(self) -> bool:
        """True when preemption or the end of `maxRunDuration` deletes the machine instead of stopping it."""
        return bool(self._scheduling.get("instanceTerminationAction") == "DELETE")

    @property
    def restarts(self) -> bool:
        """True when the platform starts the machine again after a host error."""
        return bool(self._scheduling.get("automaticRestart", not self.spot))

    @property
    def service_account(self) -> str | None:
        """The machine's identity; None when it has none."""
        accounts: Sequence[Mapping[str, Any]] = self.body.get("serviceAccounts", ())
        return str(accounts[0]["email"]) if accounts else None

    @property
    def _scheduling(self) -> Mapping[str, Any]:
        scheduling: Mapping[str, Any] = self.body.get("scheduling", {})
        return scheduling


@dataclass(frozen=True, kw_only=True, slots=True)
class Instance:
    """A machine. `turn` grows with every change, so that a timer set before a change knows that it is stale.

    `insert` and `deletes` are the operations still waiting for it; `removal` says that it goes for good once stopped.
    """

    id: str
    order: Order
    status: Status = Status.PROVISIONING
    created_at: datetime
    started_at: datetime | None = None
    stopped_at: datetime | None = None
    insert: str | None
    deletes: tuple[str, ...] = ()
    removal: bool = False
    stop: StopReason | None = None
    boots: int = 0
    turn: int = 0

    def moved(self, **changes: Any) -> Instance:
        """Return the machine with `changes`, one turn on."""
        return replace(self, turn=self.turn + 1, **changes)

    def booted(self) -> Booted:
        """Return the event of its coming up."""
        items = self.order.body.get("metadata", {}).get("items", ())
        return Booted(
            instance_id=self.id,
            project=self.order.project,
            zone=self.order.zone,
            name=self.order.name,
            boot=self.boots,
            metadata={item["key"]: item.get("value", "") for item in items},
            service_account=self.order.service_account,
            gpus=self.order.accelerator_count,
        )

    def document(self) -> dict[str, Any]:
        """Return the machine as the API shows it."""
        order = self.order
        zone_url = f"{API}/projects/{order.project}/zones/{order.zone}"
        document = {
            **order.body,
            "kind": "compute#instance",
            "id": self.id,
            "creationTimestamp": timestamp(self.created_at),
            "zone": zone_url,
            "machineType": f"{zone_url}/machineTypes/{order.machine.name}",
            "status": self.status.value,
            "disks": [self._attached_disk(zone_url)],
            "selfLink": f"{API}/{order.path}",
        }
        document.update(self._times())
        return document

    def _attached_disk(self, zone_url: str) -> dict[str, Any]:
        disk = self.order.boot_disk
        return {
            "kind": "compute#attachedDisk",
            "type": "PERSISTENT",
            "mode": "READ_WRITE",
            "index": 0,
            "boot": True,
            "autoDelete": disk.auto_delete,
            "diskSizeGb": str(disk.size_gb),
            "deviceName": "persistent-disk-0",
            "source": f"{zone_url}/disks/{disk.name}",
        }

    def _times(self) -> dict[str, Any]:
        times: dict[str, Any] = {}
        if self.started_at:
            times["lastStartTimestamp"] = timestamp(self.started_at)
        if self.stopped_at:
            times["lastStopTimestamp"] = timestamp(self.stopped_at)
        if self.started_at and self.order.max_run and self.status is Status.RUNNING:
            ends = timestamp(self.started_at + self.order.max_run)
            times["resourceStatus"] = {"scheduling": {"terminationTimestamp": ends}}
        return times

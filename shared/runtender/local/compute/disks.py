"""Disks: made with a machine, and gone with it only where the machine says so.

A boot disk that outlives its machine is attached, silently, to the next machine that asks for a disk of its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from runtender.local.compute.operations import API, timestamp


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    """A zonal disk. `user` is the path of the machine that holds it, empty when none does."""

    id: str
    project: str
    zone: str
    name: str
    size_gb: int
    type: str
    image: str
    labels: Mapping[str, str]
    created_at: datetime
    user: str = ""

    @property
    def path(self) -> str:
        """The resource's path, as errors name it."""
        return f"projects/{self.project}/zones/{self.zone}/disks/{self.name}"

    def document(self) -> dict[str, Any]:
        """Return the disk as the API shows it."""
        zone_url = f"{API}/projects/{self.project}/zones/{self.zone}"
        document: dict[str, Any] = {
            "kind": "compute#disk",
            "id": self.id,
            "creationTimestamp": timestamp(self.created_at),
            "name": self.name,
            "zone": zone_url,
            "status": "READY",
            "sizeGb": str(self.size_gb),
            "type": f"{zone_url}/diskTypes/{self.type}",
            "sourceImage": f"{API}/{self.image}",
            "selfLink": f"{API}/{self.path}",
        }
        if self.labels:
            document["labels"] = dict(self.labels)
        if self.user:
            document["users"] = [f"{API}/{self.user}"]
        return document


class Disks:
    """All disks, by zone and name."""

    def __init__(self) -> None:
        self._disks: dict[tuple[str, str], Disk] = {}

    def get(self, zone: str, name: str) -> Disk | None:
        """Look a disk up by its name or numeric id."""
        disk = self._disks.get((zone, name))
        return disk or next((one for one in self if one.zone == zone and one.id == name), None)

    def put(self, disk: Disk) -> None:
        """Keep a new disk, or a changed one."""
        self._disks[disk.zone, disk.name] = disk

    def detach(self, user: str) -> None:
        """Let go of every disk that the machine at path `user` holds."""
        for disk in tuple(self):
            if disk.user == user:
                self.put(replace(disk, user=""))

    def remove(self, zone: str, name: str) -> None:
        """Forget a disk; one that is not there is forgotten already."""
        self._disks.pop((zone, name), None)

    def __iter__(self) -> Iterator[Disk]:
        return iter(tuple(self._disks.values()))

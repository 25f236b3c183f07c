"""An insert request read and checked: everything Compute Engine refuses before it makes anything.

The published schema cannot say which fields are required, which names exist in a zone, or what goes with what; these rules
can. Each one stands for a mistake that would otherwise be met only in a real project.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from runtender.local.compute.catalogue import Catalogue, MachineType, region_of
from runtender.local.compute.errors import invalid_value, not_found, required, too_large
from runtender.local.compute.instances import BootDisk, Order

Body = Mapping[str, Any]

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_IMAGE = re.compile(r"projects/[^/]+/global/images/(family/)?[^/]+")
_SUBNETWORK = re.compile(r"(?:.*/)?projects/[^/]+/regions/(?P<region>[^/]+)/subnetworks/[^/]+")
_URL = "https://www.googleapis.com/compute/v1/"

_MAX_LABELS = 64
_MAX_METADATA_VALUE = 256 * 1024
_MAX_METADATA = 512 * 1024
_LONGEST_RUN = timedelta(days=120)
_SMALLEST_DISK_GB = 10
_ACCELERATOR_COUNTS = frozenset({1, 2, 4, 8, 16})


@dataclass(frozen=True, kw_only=True, slots=True)
class Desk:
    """Takes orders for one zone of a project. `shortest_run` is the least `maxRunDuration` that is taken."""

    project: str
    zone: str
    catalogue: Catalogue
    shortest_run: timedelta

    def read(self, body: Body) -> Order:
        """Check an insert request and return what it asks for; raises `ApiError` for the first thing wrong."""
        name = _text(body, "name", "resource")
        _check_name("resource.name", name)
        machine = self._machine(_text(body, "machineType", "resource"))
        accelerator_type, accelerator_count = self._accelerators(body, machine)
        _check_labels("resource.labels", body.get("labels", {}))
        _check_metadata(body.get("metadata", {}).get("items", []))
        self._check_network(body)
        boot_disk = self._boot_disk(body, name, machine)
        scheduling = body.get("scheduling", {})
        _check_scheduling(scheduling, gpus=accelerator_count)
        return Order(
            project=self.project,
            zone=self.zone,
            name=name,
            body=body,
            machine=machine,
            boot_disk=boot_disk,
            accelerator_type=accelerator_type,
            accelerator_count=accelerator_count,
            max_run=self._max_run(scheduling),
        )

    def _local_name(self, field: str, reference: str, collection: str) -> str:
        """Take the name out of `zones/<this zone>/<collection>/<name>`, or the same as a full URL."""
        path = reference.removeprefix(_URL).removeprefix(f"projects/{self.project}/")
        prefix = f"zones/{self.zone}/{collection}/"
        if not path.startswith(prefix) or "/" in path.removeprefix(prefix):
            raise invalid_value(field, reference, f"The URL is malformed or not of zone '{self.zone}'.")
        return path.removeprefix(prefix)

    def _machine(self, reference: str) -> MachineType:
        field = "resource.machineType"
        name = self._local_name(field, reference, "machineTypes")
        machine = self.catalogue.machine(self.zone, name)
        if machine is None:
            why = f"Machine type with name '{name}' does not exist in zone '{self.zone}'."
            raise invalid_value(field, reference, why)
        return machine

    def _accelerators(self, body: Body, machine: MachineType) -> tuple[str, int]:
        asked = body.get("guestAccelerators", [])
        if not asked:
            return machine.gpu_type, machine.gpus
        field = "resource.guestAccelerators[0]"
        reference = _text(asked[0], "acceleratorType", field)
        name = self._local_name(f"{field}.acceleratorType", reference, "acceleratorTypes")
        count = int(asked[0].get("acceleratorCount", 0))
        if not self.catalogue.has_accelerator(self.zone, name):
            raise not_found(f"projects/{self.project}/zones/{self.zone}/acceleratorTypes/{name}")
        if machine.gpus and (name, count) != (machine.gpu_type, machine.gpus):
            why = f"Machine type {machine.name} comes with {machine.gpus} {machine.gpu_type}."
            raise invalid_value(field, f"{name}:{count}", why)
        if not machine.gpus and not machine.takes_accelerators:
            why = f"Machine type {machine.name} does not support accelerators."
            raise invalid_value(field, f"{name}:{count}", why)
        if count not in _ACCELERATOR_COUNTS:
            raise invalid_value(
                f"{field}.acceleratorCount", count, "The number of accelerators is not supported."
            )
        return name, count

    def _boot_disk(self, body: Body, instance: str, machine: MachineType) -> BootDisk:
        disks = body.get("disks", [])
        if not disks:
            raise required("resource.disks")
        if len(disks) > 1 or not disks[0].get("boot"):
            raise invalid_value(
                "resource.disks", "", "The local cloud makes machines with one disk, the boot disk."
            )
        field = "resource.disks[0].initializeParams"
        asked = disks[0].get("initializeParams", {})
        image = _text(asked, "sourceImage", field).removeprefix(_URL)
        if not _IMAGE.fullmatch(image):
            raise invalid_value(f"{field}.sourceImage", image, "The URL is malformed.")
        name = asked.get("diskName", instance)
        _check_name(f"{field}.diskName", name)
        size = int(asked.get("diskSizeGb", _SMALLEST_DISK_GB))
        if size < _SMALLEST_DISK_GB:
            why = f"Disk size cannot be smaller than the image size ({_SMALLEST_DISK_GB} GB)."
            raise invalid_value(f"{field}.diskSizeGb", size, why)
        labels = asked.get("labels", {})
        _check_labels(f"{field}.labels", labels)
        return BootDisk(
            name=name,
            size_gb=size,
            type=self._disk_type(f"{field}.diskType", asked.get("diskType", ""), machine),
            image=image,
            labels=labels,
            auto_delete=bool(disks[0].get("autoDelete")),
        )

    def _disk_type(self, field: str, reference: str, machine: MachineType) -> str:
        name = self._local_name(field, reference, "diskTypes") if reference else "pd-standard"
        if not self.catalogue.has_disk_type(name):
            raise not_found(f"projects/{self.project}/zones/{self.zone}/diskTypes/{name}")
        if not machine.takes_disk(name):
            why = f"{name} disk type cannot be used by {machine.name} machine type."
            raise invalid_value(field, reference or name, why)
        return name

    def _check_network(self, body: Body) -> None:
        interfaces = body.get("networkInterfaces", [])
        if not interfaces:
            raise required("resource.networkInterfaces")
        field = "resource.networkInterfaces[0].subnetwork"
        subnetwork = interfaces[0].get("subnetwork")
        if subnetwork is None:
            return
        match = _SUBNETWORK.fullmatch(subnetwork)
        if match is None:
            raise invalid_value(field, subnetwork, "The URL is malformed.")
        if match["region"] != region_of(self.zone):
            raise invalid_value(
                field, subnetwork, f"The subnetwork is not in the region of zone '{self.zone}'."
            )

    def _max_run(self, scheduling: Body) -> timedelta | None:
        if "maxRunDuration" not in scheduling:
            return None
        field = "resource.scheduling.maxRunDuration"
        if scheduling.get("instanceTerminationAction") not in {"STOP", "DELETE"}:
            why = "Instance termination action must be set for a machine with a limited run time."
            raise invalid_value("resource.scheduling.instanceTerminationAction", "", why)
        span = timedelta(seconds=int(scheduling["maxRunDuration"].get("seconds", 0)))
        if not self.shortest_run <= span <= _LONGEST_RUN:
            why = f"Must be between {self.shortest_run.total_seconds():g} seconds and 120 days."
            raise invalid_value(field, int(span.total_seconds()), why)
        return span


def _text(holder: Body, key: str, path: str) -> str:
    value = holder.get(key)
    if not value:
        raise required(f"{path}.{key}")
    return str(value)


def _check_name(field: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise invalid_value(field, name, f"Must be a match of regex '{_NAME.pattern}'")


def _check_labels(field: str, labels: Mapping[str, str]) -> None:
    if len(labels) > _MAX_LABELS:
        raise invalid_value(field, "", f"The number of labels exceeds the maximum of {_MAX_LABELS}.")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise invalid_value(field, key, f"Label key '{key}' violates format constraints.")
        if not _LABEL_VALUE.fullmatch(value):
            raise invalid_value(field, value, f"Label value '{value}' violates format constraints.")


def _check_metadata(items: list[Body]) -> None:
    total = 0
    for index, item in enumerate(items):
        field = f"resource.metadata.items[{index}].value"
        size = len(item.get("value", ""))
        total += size + len(_text(item, "key", f"resource.metadata.items[{index}]"))
        if size > _MAX_METADATA_VALUE:
            raise too_large(field, _MAX_METADATA_VALUE, size)
    if total > _MAX_METADATA:
        raise too_large("resource.metadata", _MAX_METADATA, total)


def _check_scheduling(scheduling: Body, *, gpus: int) -> None:
    maintenance = scheduling.get("onHostMaintenance", "MIGRATE")
    field = "resource.scheduling.onHostMaintenance"
    if gpus and maintenance != "TERMINATE":
        raise invalid_value(
            field, maintenance, "Instances with guest accelerators do not support live migration."
        )
    spot = scheduling.get("provisioningModel") == "SPOT"
    if spot and (scheduling.get("automaticRestart") or maintenance != "TERMINATE"):
        why = "Spot instances are not restarted automatically and do not migrate."
        raise invalid_value("resource.scheduling", "SPOT", why)

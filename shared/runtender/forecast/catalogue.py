"""The tables of machine series and GPUs, read from data: what is shipped, and what a user adds to it.

`machines.json` beside this file has one row per series and per GPU, each with the public source it was read from and
the day. A file of the same shape (SF_MACHINES) adds rows or replaces shipped ones by name, so that a new series needs
no new release.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from runtender.forecast.validation import (
    FieldReader,
    Kind,
    block,
    choice,
    flag,
    list_of,
    number,
    optional,
    text,
    whole,
)

GIB = 1024**3
STANDARD, SPOT = "STANDARD", "SPOT"

_SHIPPED = "machines.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A machine's size. Memory is 0 where it is not known."""

    vcpus: int
    memory_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineFamily:
    """What a machine series offers, and what it demands of its VMs.

    The first of `boot_disks` is taken; `disks_of` has the machine types that differ. `maintenance` is the policy of a VM
    without GPUs that is not Spot. `with_gpus`: every type of the series comes with them. `gib_per_vcpu` is by class.
    """

    boot_disks: tuple[str, ...] = ("pd-balanced",)
    disks_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    maintenance: str = "TERMINATE"
    provisioning: tuple[str, ...] = (STANDARD, SPOT)
    with_gpus: bool = False
    gib_per_vcpu: Mapping[str, float] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    source: str = ""
    read_on: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """A GPU model and the machine types that carry it, by number of devices; the first one is chosen by itself.

    `prefix` allows every type of a series instead, up to `most_vcpus` by number of devices.
    """

    accelerator: str
    device_gib: float
    machines: Mapping[int, tuple[str, ...]]
    prefix: str | None = None
    most_vcpus: Mapping[int, int] = field(default_factory=dict)
    source: str = ""
    read_on: str = ""

    @property
    def automatic(self) -> Mapping[int, str]:
        """The machine type that is chosen, by number of devices."""
        return {count: types[0] for count, types in self.machines.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalogue:
    """All series and GPUs that are known, by name."""

    families: Mapping[str, MachineFamily]
    gpus: Mapping[str, Gpu]

    def family_of(self, machine_type: str) -> MachineFamily:
        """Return the series of a machine type; one that nobody knows has the defaults."""
        return self.families.get(machine_type.partition("-")[0], MachineFamily())


_TABLES: Mapping[str, Kind] = {"families": block(), "gpus": block()}
_FAMILY: Mapping[str, Kind] = {
    "boot_disks": list_of(text(63), least=1),
    "maintenance": choice("TERMINATE", "MIGRATE"),
    "provisioning": list_of(choice(STANDARD, SPOT), least=1),
    "with_gpus": flag(),
    "gib_per_vcpu": block(),
    "shapes": block(),
    "source": text(),
    "read_on": text(),
}
_SHAPE: Mapping[str, Kind] = {
    "vcpus": whole(),
    "gib": number(0, above=True),
    "boot_disks": list_of(text(63), least=1),
}
_GPU: Mapping[str, Kind] = {
    "accelerator": text(63),
    "device_gib": number(0, above=True),
    "machines": block(),
    "prefix": optional(text(63)),
    "most_vcpus": block(),
    "source": text(),
    "read_on": text(),
}
_RATIO = number(0, above=True)
_TYPES = list_of(text(63), least=1)
_COUNT = whole()


@cache
def shipped() -> Catalogue:
    """Return the tables that this release brings."""
    content = files(__package__).joinpath(_SHIPPED).read_text(encoding="utf-8")
    return extended(Catalogue(families={}, gpus={}), json.loads(content))


def extended(base: Catalogue, raw: Mapping[str, Any]) -> Catalogue:
    """Return `base` with the rows of `raw` added, or put in the place of rows of their names.

    Raises `Rejected` with every fault, each by its path.
    """
    reader = FieldReader()
    tables = reader.fields(raw, "", _TABLES)
    families = {name: _family(reader, name, row) for name, row in tables.get("families", {}).items()}
    gpus = {name: _gpu(reader, name, row) for name, row in tables.get("gpus", {}).items()}
    reader.finish()
    return Catalogue(families={**base.families, **families}, gpus={**base.gpus, **gpus})


def _family(reader: FieldReader, name: str, raw: object) -> MachineFamily:
    path = f"families.{name}"
    row = reader.fields(raw, path, _FAMILY)
    for shape_class, ratio in row.get("gib_per_vcpu", {}).items():
        _check(reader, f"{path}.gib_per_vcpu.{shape_class}", ratio, _RATIO)
    sizes = {
        machine: reader.fields(size, f"{path}.shapes.{machine}", _SHAPE, required=("vcpus", "gib"))
        for machine, size in row.pop("shapes", {}).items()
    }
    if reader.blames(path):
        return MachineFamily()
    shapes = {
        machine: Shape(vcpus=size["vcpus"], memory_bytes=int(size["gib"] * GIB))
        for machine, size in sizes.items()
    }
    disks_of = {machine: size["boot_disks"] for machine, size in sizes.items() if "boot_disks" in size}
    return MachineFamily(**row, shapes=shapes, disks_of=disks_of)


def _gpu(reader: FieldReader, name: str, raw: object) -> Gpu:
    path = f"gpus.{name}"
    row = reader.fields(raw, path, _GPU, required=("accelerator", "device_gib", "machines"))
    machines = _by_count(reader, f"{path}.machines", row.pop("machines", {}), _TYPES)
    most_vcpus = _by_count(reader, f"{path}.most_vcpus", row.pop("most_vcpus", {}), _COUNT)
    if reader.blames(path):
        return Gpu(accelerator="", device_gib=0, machines={})
    return Gpu(**row, machines=machines, most_vcpus=most_vcpus)


def _by_count(reader: FieldReader, path: str, raw: Mapping[str, Any], kind: Kind) -> Mapping[int, Any]:
    found = {}
    for count, value in raw.items():
        if not count.isascii() or not count.isdigit() or not int(count):
            reader.fault(f"{path}.{count}", "is not a number of devices", "write e.g. 1 or 2")
        elif _check(reader, f"{path}.{count}", value, kind):
            found[int(count)] = kind.make(value)
    return found


def _check(reader: FieldReader, path: str, value: object, kind: Kind) -> bool:
    if kind.accepts(value):
        return True
    reader.fault(path, f"{value!r} is not accepted", f"it must be {kind.expects}")
    return False

"""What each zone offers: machine types with their cores, accelerators, disk types.

Zones are those of the plane's built-in map; where which accelerator is found follows Google's published tables. Sizes are
listed rather than computed, because asking for a size that does not exist is a mistake worth finding locally.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_ZONES: Mapping[str, str] = {
    "us-central1": "abcf",
    "us-east1": "bcd",
    "us-east4": "abc",
    "us-east5": "abc",
    "us-south1": "abc",
    "us-west1": "abc",
    "us-west2": "abc",
    "us-west3": "abc",
    "us-west4": "abc",
}

# Family: its classes and the sizes they come in (vCPUs).
_SIZES: Mapping[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "e2": (("standard", "highmem", "highcpu"), (2, 4, 8, 16, 32)),
    "n1": (("standard", "highmem", "highcpu"), (1, 2, 4, 8, 16, 32, 64, 96)),
    "n2": (("standard", "highmem", "highcpu"), (2, 4, 8, 16, 32, 48, 64, 80, 96, 128)),
    "n2d": (("standard", "highmem", "highcpu"), (2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224)),
    "n4": (("standard", "highmem", "highcpu"), (2, 4, 8, 16, 32, 48, 64, 80)),
    "c2": (("standard",), (4, 8, 16, 30, 60)),
    "c3": (("standard", "highmem", "highcpu"), (4, 8, 22, 44, 88, 176)),
    "c4": (("standard", "highmem", "highcpu"), (2, 4, 8, 16, 24, 32, 48, 96, 144, 192, 288)),
    "g2": (("standard",), (4, 8, 12, 16, 24, 32, 48, 96)),
}
_G2_GPUS: Mapping[int, int] = {24: 2, 48: 4, 96: 8}
# Machine types that are sold by their accelerators: vCPUs, count, accelerator.
_BY_GPU: Mapping[str, tuple[int, int, str]] = {
    "a2-highgpu-1g": (12, 1, "nvidia-tesla-a100"),
    "a2-highgpu-2g": (24, 2, "nvidia-tesla-a100"),
    "a2-highgpu-4g": (48, 4, "nvidia-tesla-a100"),
    "a2-highgpu-8g": (96, 8, "nvidia-tesla-a100"),
    "a2-megagpu-16g": (96, 16, "nvidia-tesla-a100"),
    "a2-ultragpu-1g": (12, 1, "nvidia-a100-80gb"),
    "a2-ultragpu-2g": (24, 2, "nvidia-a100-80gb"),
    "a2-ultragpu-4g": (48, 4, "nvidia-a100-80gb"),
    "a2-ultragpu-8g": (96, 8, "nvidia-a100-80gb"),
}
_ACCELERATORS: Mapping[str, frozenset[str]] = {
    "nvidia-tesla-t4": frozenset(
        "us-central1-a us-central1-b us-central1-c us-central1-f us-east1-c us-east1-d us-east4-b us-west1-a "
        "us-west1-b us-west2-b us-west2-c us-west3-b us-west4-a us-west4-b".split()
    ),
    "nvidia-l4": frozenset(
        "us-central1-a us-central1-b us-central1-c us-east1-b us-east1-c us-east1-d us-east4-a us-east4-c "
        "us-west1-a us-west1-b us-west1-c us-west4-a us-west4-c".split()
    ),
    "nvidia-tesla-a100": frozenset(
        "us-central1-a us-central1-b us-central1-c us-central1-f us-east1-b us-west1-b us-west3-b us-west4-b".split()
    ),
    "nvidia-a100-80gb": frozenset("us-central1-a us-central1-c us-east4-c us-east5-a us-east5-b".split()),
}
_DISKS = frozenset({"pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"})
_HYPERDISK_ONLY = frozenset({"n4", "c4"})
_HYPERDISK_TOO = frozenset({"c3"})


def region_of(zone: str) -> str:
    """Return the region of a zone."""
    return zone.rpartition("-")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineType:
    """A machine type as one zone offers it. `gpus` come with the type itself."""

    name: str
    family: str
    cpus: int
    gpus: int = 0
    gpu_type: str = ""

    def takes_disk(self, disk_type: str) -> bool:
        """Say whether machines of this type boot from such a disk."""
        if disk_type == "hyperdisk-balanced":
            return self.family in _HYPERDISK_ONLY | _HYPERDISK_TOO
        return self.family not in _HYPERDISK_ONLY

    @property
    def takes_accelerators(self) -> bool:
        """True where accelerators are attached by the request instead of coming with the type."""
        return self.family == "n1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalogue:
    """The zones there are. `withdrawn` are (zone, machine type) pairs that a zone does not offer, for scenarios."""

    regions: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {
            region: tuple(f"{region}-{letter}" for letter in letters) for region, letters in _ZONES.items()
        }
    )
    withdrawn: frozenset[tuple[str, str]] = frozenset()

    @property
    def zones(self) -> tuple[str, ...]:
        """All zones, region by region."""
        return tuple(zone for zones in self.regions.values() for zone in zones)

    def has_zone(self, zone: str) -> bool:
        """Say whether there is such a zone."""
        return zone in self.regions.get(region_of(zone), ())

    def machine(self, zone: str, name: str) -> MachineType | None:
        """Look a machine type up; None when the zone has none of that name."""
        machine = _machine(name)
        if machine is None or (zone, name) in self.withdrawn:
            return None
        return machine if not machine.gpu_type or self.has_accelerator(zone, machine.gpu_type) else None

    def has_accelerator(self, zone: str, name: str) -> bool:
        """Say whether a zone has accelerators of this type."""
        return zone in _ACCELERATORS.get(name, frozenset())

    def has_disk_type(self, name: str) -> bool:
        """Say whether there are disks of this type."""
        return name in _DISKS


def _machine(name: str) -> MachineType | None:
    if by_gpu := _BY_GPU.get(name):
        cpus, gpus, gpu_type = by_gpu
        return MachineType(name=name, family="a2", cpus=cpus, gpus=gpus, gpu_type=gpu_type)
    family, _, rest = name.partition("-")
    kind, _, size = rest.partition("-")
    classes, sizes = _SIZES.get(family, ((), ()))
    if kind not in classes or not size.isascii() or not size.isdigit() or int(size) not in sizes:
        return None
    cpus = int(size)
    if family == "g2":
        return MachineType(
            name=name, family=family, cpus=cpus, gpus=_G2_GPUS.get(cpus, 1), gpu_type="nvidia-l4"
        )
    return MachineType(name=name, family=family, cpus=cpus)

"""Machine types and GPUs as tables: what fits together, how large it is, what a VM of it must say.

Shapes and the rules of the GPU table are facts of Compute Engine's machine series. A name that cannot be
parsed counts as 8 vCPUs of unknown memory: a custom type must not stop a run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

AUTO = "auto"
DEFAULT_CPU_MACHINE = "n2-standard-8"
GIB = 1024**3

_FALLBACK_VCPUS = 8
_FALLBACK_POD_BYTES = 8 * GIB
_UNLISTED_GIB_PER_VCPU = 3.75
_UNKNOWN_DEVICE_GIB = 16

_NAME = re.compile(r"(?P<family>[a-z][a-z0-9]*)-(?P<shape>[a-z]+)-(?P<vcpus>[1-9][0-9]{0,3})")
_GPU_METRIC_NAME = re.compile(r"NVIDIA_(?:TESLA_)?(?P<short>[A-Z0-9_]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A machine's size. Memory is 0 where it is not known."""

    vcpus: int
    memory_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineFamily:
    """What a machine series demands of its VMs.

    `maintenance` is the policy of a VM without GPUs that is not Spot.
    """

    disk_type: str = "pd-balanced"
    maintenance: str = "TERMINATE"


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """A GPU model: its machine type by number of devices, and what else is allowed in place of that.

    `others` lists machine types that are allowed too, by number of devices; `prefix` allows every type of a
    series, up to `most_vcpus` by number of devices.
    """

    accelerator: str
    device_gib: int
    automatic: Mapping[int, str]
    others: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    prefix: str | None = None
    most_vcpus: Mapping[int, int] = field(default_factory=dict)


GPUS: Mapping[str, Gpu] = {
    "T4": Gpu(
        accelerator="nvidia-tesla-t4",
        device_gib=16,
        automatic={1: "n1-standard-8", 2: "n1-standard-8", 4: "n1-standard-16"},
        prefix="n1-",
        most_vcpus={1: 48, 2: 48},
    ),
    "L4": Gpu(
        accelerator="nvidia-l4",
        device_gib=24,
        automatic={1: "g2-standard-8", 2: "g2-standard-24", 4: "g2-standard-48", 8: "g2-standard-96"},
        others={1: ("g2-standard-4", "g2-standard-12", "g2-standard-16", "g2-standard-32")},
    ),
    "A100": Gpu(
        accelerator="nvidia-tesla-a100",
        device_gib=40,
        automatic={
            1: "a2-highgpu-1g",
            2: "a2-highgpu-2g",
            4: "a2-highgpu-4g",
            8: "a2-highgpu-8g",
            16: "a2-megagpu-16g",
        },
    ),
    "A100_80GB": Gpu(
        accelerator="nvidia-a100-80gb",
        device_gib=80,
        automatic={1: "a2-ultragpu-1g", 2: "a2-ultragpu-2g", 4: "a2-ultragpu-4g", 8: "a2-ultragpu-8g"},
    ),
}

MACHINE_FAMILIES: Mapping[str, MachineFamily] = {
    "n1": MachineFamily(),
    "n2": MachineFamily(),
    "n2d": MachineFamily(),
    "e2": MachineFamily(maintenance="MIGRATE"),
    "c2": MachineFamily(),
    "g2": MachineFamily(),
    "a2": MachineFamily(),
}

_GPU_SERIES = ("g2-", "a2-")

_GIB_PER_VCPU: Mapping[str, float] = {
    "n1-standard": 3.75,
    "n1-highmem": 6.5,
    "n1-highcpu": 0.9,
    "n2-standard": 4,
    "n2-highmem": 8,
    "n2-highcpu": 1,
    "n2d-standard": 4,
    "n2d-highmem": 8,
    "n2d-highcpu": 1,
    "e2-standard": 4,
    "e2-highmem": 8,
    "e2-highcpu": 1,
    "c2-standard": 4,
    "g2-standard": 4,
}

_FIXED: Mapping[str, Shape] = {
    name: Shape(vcpus=vcpus, memory_bytes=gib * GIB)
    for name, vcpus, gib in (
        ("a2-highgpu-1g", 12, 85),
        ("a2-highgpu-2g", 24, 170),
        ("a2-highgpu-4g", 48, 340),
        ("a2-highgpu-8g", 96, 680),
        ("a2-megagpu-16g", 96, 1360),
        ("a2-ultragpu-1g", 12, 170),
        ("a2-ultragpu-2g", 24, 340),
        ("a2-ultragpu-4g", 48, 680),
        ("a2-ultragpu-8g", 96, 1360),
    )
}


def resolve_machine_type(
    *, hardware: str, gpu_type: str | None, count: int, default: str, override: str | None
) -> str:
    """Return a job's machine type: the override, else the default, else the one that suits the hardware.

    The CPU default is no choice for a GPU job, nor a GPU series for a CPU job's default. Raises ValueError
    for a machine type or a number of GPUs that do not go together.
    """
    chosen = None if override in (None, AUTO) else override
    if hardware == "gpu":
        if chosen is None and default not in (AUTO, DEFAULT_CPU_MACHINE):
            chosen = default
        return _gpu_machine(gpu_type or "T4", count, chosen)
    if chosen is not None and chosen.startswith(_GPU_SERIES):
        raise ValueError(f"{chosen} comes with GPUs, the hardware is cpu; choose another series, e.g. n2")
    if chosen is not None:
        return chosen
    return DEFAULT_CPU_MACHINE if default == AUTO or default.startswith(_GPU_SERIES) else default


def check_accelerator_count(gpu_type: str, count: int) -> None:
    """Raise ValueError if no machine carries `count` devices of this GPU, or if the GPU is not known."""
    gpu = GPUS.get(gpu_type)
    if gpu is None:
        raise ValueError(f"GPU type {gpu_type!r} is not known; use one of {', '.join(GPUS)}")
    if count not in gpu.automatic:
        counts = ", ".join(str(known) for known in gpu.automatic)
        raise ValueError(f"no machine has {count} x {gpu_type}; use a count of {counts}")


def shape_of(machine_type: str) -> Shape:
    """Return a machine type's vCPUs and memory, as far as its name tells them."""
    if machine_type in _FIXED:
        return _FIXED[machine_type]
    match = _NAME.fullmatch(machine_type)
    if match is None:
        return Shape(vcpus=_FALLBACK_VCPUS, memory_bytes=0)
    vcpus = int(match["vcpus"])
    per_vcpu = _GIB_PER_VCPU.get(f"{match['family']}-{match['shape']}", _UNLISTED_GIB_PER_VCPU)
    return Shape(vcpus=vcpus, memory_bytes=int(vcpus * per_vcpu * GIB))


def machine_family(machine_type: str) -> str:
    """Return the series of a machine type: `n1` for `n1-highmem-32`."""
    return machine_type.partition("-")[0]


def disk_type(machine_type: str) -> str:
    """Return the boot disk type that the machine's series takes."""
    return MACHINE_FAMILIES.get(machine_family(machine_type), MachineFamily()).disk_type


def on_host_maintenance(machine_type: str, *, accelerators: int, spot: bool) -> str:
    """Return what a VM must do on host maintenance; GPUs cannot migrate and Spot may not."""
    if accelerators or spot:
        return "TERMINATE"
    return MACHINE_FAMILIES.get(machine_family(machine_type), MachineFamily()).maintenance


def accelerator_type(gpu_type: str) -> str:
    """Return Compute Engine's name of a GPU; one not in the table is `nvidia-` and its name in lower case."""
    gpu = GPUS.get(gpu_type)
    return gpu.accelerator if gpu else f"nvidia-{gpu_type.lower()}"


def device_bytes(gpu_type: str) -> int:
    """Return a GPU's memory; 16 GiB for one that is not in the table."""
    gpu = GPUS.get(gpu_type)
    return (gpu.device_gib if gpu else _UNKNOWN_DEVICE_GIB) * GIB


def gpu_short_name(metric_name: str) -> str | None:
    """Return `T4` for `NVIDIA_TESLA_T4`; None for what is no such name."""
    match = _GPU_METRIC_NAME.fullmatch(metric_name)
    return match["short"] if match else None


def pod_requests(machine_type: str) -> tuple[str, str]:
    """Return the CPU and memory that a node's one pod asks for, as Kubernetes quantities."""
    shape = shape_of(machine_type)
    memory = shape.memory_bytes or _FALLBACK_POD_BYTES
    return str(max(1, _pod_share(shape.vcpus))), f"{max(2, _pod_share(memory) // GIB)}Gi"


def _pod_share(whole: int) -> int:
    # 60 %, so that exactly one pod fits on a node beside the node's own daemons.
    return whole * 6 // 10


def _gpu_machine(gpu_type: str, count: int, chosen: str | None) -> str:
    check_accelerator_count(gpu_type, count)
    gpu = GPUS[gpu_type]
    machine = chosen or gpu.automatic[count]
    if gpu.prefix is not None:
        if not machine.startswith(gpu.prefix):
            raise ValueError(f"{machine} cannot carry {gpu_type}; choose a machine type of {gpu.prefix[:-1]}")
        most = gpu.most_vcpus.get(count)
        if most is not None and shape_of(machine).vcpus > most:
            raise ValueError(f"{count} x {gpu_type} allows at most {most} vCPUs, {machine} has more")
        return machine
    allowed = (gpu.automatic[count], *gpu.others.get(count, ()))
    if machine not in allowed:
        raise ValueError(f"{machine} cannot carry {count} x {gpu_type}; use {' or '.join(allowed)}")
    return machine

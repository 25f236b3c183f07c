"""Machine types and GPUs: what fits together, how large it is, what a VM of it must say.

The rules; the facts are the catalogue's. A name that cannot be parsed counts as 8 vCPUs of unknown memory: a custom
type must not stop a run.
"""

from __future__ import annotations

import re

from runtender.forecast.catalogue import GIB, SPOT, Catalogue, Shape, shipped

AUTO = "auto"
DEFAULT_CPU_MACHINE = "n2-standard-8"
SHIPPED = shipped()

_FALLBACK_VCPUS = 8
_FALLBACK_POD_BYTES = 8 * GIB
_UNLISTED_GIB_PER_VCPU = 3.75
_UNKNOWN_DEVICE_GIB = 16

_NAME = re.compile(r"(?P<family>[a-z][a-z0-9]*)-(?P<shape>[a-z]+)-(?P<vcpus>[1-9][0-9]{0,3})")
_GPU_METRIC_NAME = re.compile(r"NVIDIA_(?:TESLA_)?(?P<short>[A-Z0-9_]+)")


def resolve_machine_type(
    *,
    hardware: str,
    gpu_type: str | None,
    count: int,
    default: str,
    override: str | None,
    catalogue: Catalogue = SHIPPED,
) -> str:
    """Return a job's machine type: the override, else the default, else the one that suits the hardware.

    The CPU default is no choice for a GPU job, nor a GPU series for a CPU job's default. Raises ValueError
    for a machine type or a number of GPUs that do not go together.
    """
    chosen = None if override in (None, AUTO) else override
    if hardware == "gpu":
        if chosen is None and default not in (AUTO, DEFAULT_CPU_MACHINE):
            chosen = default
        return _gpu_machine(gpu_type or "T4", count, chosen, catalogue)
    if chosen is not None and catalogue.family_of(chosen).with_gpus:
        raise ValueError(f"{chosen} comes with GPUs, the hardware is cpu; choose another series, e.g. n2")
    if chosen is not None:
        return chosen
    return DEFAULT_CPU_MACHINE if default == AUTO or catalogue.family_of(default).with_gpus else default


def check_accelerator_count(gpu_type: str, count: int, catalogue: Catalogue = SHIPPED) -> None:
    """Raise ValueError if no machine carries `count` devices of this GPU, or if the GPU is not known."""
    gpu = catalogue.gpus.get(gpu_type)
    if gpu is None:
        raise ValueError(f"GPU type {gpu_type!r} is not known; use one of {', '.join(catalogue.gpus)}")
    if count not in gpu.machines:
        counts = ", ".join(str(known) for known in gpu.machines)
        raise ValueError(f"no machine has {count} x {gpu_type}; use a count of {counts}")


def check_provisioning(machine_type: str, *, spot: bool, catalogue: Catalogue = SHIPPED) -> None:
    """Raise ValueError for a Spot VM of a series that has none."""
    if spot and SPOT not in catalogue.family_of(machine_type).provisioning:
        raise ValueError(f"{machine_type} is not sold as Spot; leave `spot` out or choose another series")


def shape_of(machine_type: str, catalogue: Catalogue = SHIPPED) -> Shape:
    """Return a machine type's vCPUs and memory, as far as the catalogue or its name tells them."""
    family = catalogue.family_of(machine_type)
    if machine_type in family.shapes:
        return family.shapes[machine_type]
    match = _NAME.fullmatch(machine_type)
    if match is None:
        return Shape(vcpus=_FALLBACK_VCPUS, memory_bytes=0)
    vcpus = int(match["vcpus"])
    per_vcpu = family.gib_per_vcpu.get(match["shape"], _UNLISTED_GIB_PER_VCPU)
    return Shape(vcpus=vcpus, memory_bytes=int(vcpus * per_vcpu * GIB))


def machine_family(machine_type: str) -> str:
    """Return the series of a machine type: `n1` for `n1-highmem-32`."""
    return machine_type.partition("-")[0]


def disk_type(machine_type: str, catalogue: Catalogue = SHIPPED) -> str:
    """Return the boot disk type that the machine type takes."""
    family = catalogue.family_of(machine_type)
    return family.disks_of.get(machine_type, family.boot_disks)[0]


def on_host_maintenance(
    machine_type: str, *, accelerators: int, spot: bool, catalogue: Catalogue = SHIPPED
) -> str:
    """Return what a VM must do on host maintenance; GPUs cannot migrate and Spot may not."""
    if accelerators or spot:
        return "TERMINATE"
    return catalogue.family_of(machine_type).maintenance


def accelerator_type(gpu_type: str, catalogue: Catalogue = SHIPPED) -> str:
    """Return Compute Engine's name of a GPU; one not in the table is `nvidia-` and its name in lower case."""
    gpu = catalogue.gpus.get(gpu_type)
    return gpu.accelerator if gpu else f"nvidia-{gpu_type.lower()}"


def device_bytes(gpu_type: str, catalogue: Catalogue = SHIPPED) -> int:
    """Return a GPU's memory; 16 GiB for one that is not in the table."""
    gpu = catalogue.gpus.get(gpu_type)
    return int((gpu.device_gib if gpu else _UNKNOWN_DEVICE_GIB) * GIB)


def gpu_short_name(metric_name: str) -> str | None:
    """Return `T4` for `NVIDIA_TESLA_T4`; None for what is no such name.

    For who reads quota metrics: the plane itself goes from GPUs to metrics.
    """
    match = _GPU_METRIC_NAME.fullmatch(metric_name)
    return match["short"] if match else None


def pod_requests(machine_type: str, catalogue: Catalogue = SHIPPED) -> tuple[str, str]:
    """Return the CPU and memory that a node's one pod asks for, as Kubernetes quantities."""
    shape = shape_of(machine_type, catalogue)
    memory = shape.memory_bytes or _FALLBACK_POD_BYTES
    return str(max(1, _pod_share(shape.vcpus))), f"{max(2, _pod_share(memory) // GIB)}Gi"


def _pod_share(whole: int) -> int:
    # 60 %, so that exactly one pod fits on a node beside the node's own daemons.
    return whole * 6 // 10


def _gpu_machine(gpu_type: str, count: int, chosen: str | None, catalogue: Catalogue) -> str:
    check_accelerator_count(gpu_type, count, catalogue)
    gpu = catalogue.gpus[gpu_type]
    allowed = gpu.machines[count]
    machine = chosen or allowed[0]
    if gpu.prefix is not None:
        if not machine.startswith(gpu.prefix):
            raise ValueError(f"{machine} cannot carry {gpu_type}; choose a machine type of {gpu.prefix[:-1]}")
        most = gpu.most_vcpus.get(count)
        if most is not None and shape_of(machine, catalogue).vcpus > most:
            raise ValueError(f"{count} x {gpu_type} allows at most {most} vCPUs, {machine} has more")
        return machine
    if machine not in allowed:
        raise ValueError(f"{machine} cannot carry {count} x {gpu_type}; use {' or '.join(allowed)}")
    return machine

"""What a plan asks of which meters, before anything is created.

Compute Engine meters older machine series and GPUs one by one in each region and tells limit and usage of them; newer
ones are metered per family, and Service Usage tells the limit alone. Some meters count over all regions. Spot machines have
meters of their own where the project was granted any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from runtender.model import JobPlan
from runtender.ports import Meter

SERVICE = "compute.googleapis.com"

_SERIES_WITH_OWN_METER = frozenset(
    {"a2", "c2", "c2d", "c3", "e2", "m1", "m2", "m3", "n2", "n2d", "t2a", "t2d"}
)
# `custom` machine types are the first series', which had no name.
_SERIES_IN_CPUS = frozenset({"custom", "f1", "g1", "g2", "n1"})
_GPUS_WITH_OWN_METER = frozenset({"T4", "L4", "V100", "P100", "P4", "K80", "A100", "A100_80GB"})
_DISKS: Mapping[str, str] = {
    "pd-standard": "DISKS_TOTAL_GB",
    "pd-balanced": "SSD_TOTAL_GB",
    "pd-ssd": "SSD_TOTAL_GB",
    "hyperdisk-balanced": "HDB_TOTAL_GB",
}


class Sharing(StrEnum):
    """A pool's meter counts this job's pool alone; a shared one counts everything else in the project too."""

    POOL = "pool"
    SHARED = "shared"


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """So much of one meter: `fixed`, and `per_unit` for each of `min_units` to `max_units` units (machines).

    `standard` is the meter that pays instead where the project was granted none of `meter` (Spot).
    """

    meter: Meter
    unit: str
    per_unit: int
    fixed: int = 0
    min_units: int = 1
    max_units: int = 1
    sharing: Sharing = Sharing.SHARED
    standard: Meter | None = None

    def amount(self, units: int) -> int:
        """Return what that many units ask for."""
        return self.fixed + self.per_unit * max(0, units)


def demands_of(plan: JobPlan) -> tuple[Demand, ...]:
    """Return everything that the plan's machines ask for in a region, the scarcest first."""
    units = max(1, plan.worker_count)
    found = [*_gpus(plan, units), *_cpus(plan, units), _disks(plan, units)]
    instances = Meter(name="INSTANCES", metric=f"{SERVICE}/instances")
    found.append(Demand(meter=instances, unit="machines", per_unit=1, max_units=units))
    return tuple(found)


def meters_of(demands: Iterable[Demand]) -> tuple[Meter, ...]:
    """Return every meter that has to be read to weigh these demands."""
    return tuple(
        meter for demand in demands for meter in (demand.meter, demand.standard) if meter is not None
    )


def _gpus(plan: JobPlan, units: int) -> list[Demand]:
    if not plan.accelerator_count or not plan.gpu_type:
        return []
    count = plan.accelerator_count
    meter, standard = gpu_meter(plan.gpu_type), None
    if plan.spot:
        meter, standard = _preemptible(meter), meter
    everywhere = Meter(name="GPUS_ALL_REGIONS", metric=f"{SERVICE}/gpus_all_regions", everywhere=True)
    return [
        Demand(
            meter=meter,
            standard=standard,
            unit="GPUs",
            per_unit=count,
            max_units=units,
            sharing=Sharing.POOL,
        ),
        Demand(meter=everywhere, unit="GPUs", per_unit=count, max_units=units, sharing=Sharing.POOL),
    ]


def _cpus(plan: JobPlan, units: int) -> list[Demand]:
    if not plan.vcpus:
        return []
    meter, standard = cpu_meter(plan.machine_type), None
    if plan.spot:
        meter, standard = Meter(name="PREEMPTIBLE_CPUS", metric=f"{SERVICE}/preemptible_cpus"), meter
    everywhere = Meter(name="CPUS_ALL_REGIONS", metric=f"{SERVICE}/cpus_all_regions", everywhere=True)
    return [
        Demand(meter=meter, standard=standard, unit="vCPUs", per_unit=plan.vcpus, max_units=units),
        Demand(meter=everywhere, unit="vCPUs", per_unit=plan.vcpus, max_units=units),
    ]


def _disks(plan: JobPlan, units: int) -> Demand:
    name = _DISKS.get(plan.disk_type, "SSD_TOTAL_GB")
    meter = Meter(name=name, metric=f"{SERVICE}/{name.lower()}")
    return Demand(meter=meter, unit="GB", per_unit=plan.boot_disk_gb, max_units=units)


def cpu_meter(machine_type: str) -> Meter:
    """Return the meter of a machine type's vCPUs: its series' own, the common one, or that of newer families."""
    series = machine_type.partition("-")[0]
    if series in _SERIES_IN_CPUS:
        return Meter(name="CPUS", metric=f"{SERVICE}/cpus")
    if series in _SERIES_WITH_OWN_METER:
        return Meter(name=f"{series.upper()}_CPUS", metric=f"{SERVICE}/{series}_cpus")
    return Meter(
        name=f"{series.upper()}_CPUS",
        metric=f"{SERVICE}/cpus_per_vm_family",
        dimension=("vm_family", series.upper()),
    )


def gpu_meter(gpu_type: str) -> Meter:
    """Return the meter of a GPU model, by its short name."""
    name = gpu_type.upper()
    if name in _GPUS_WITH_OWN_METER:
        return Meter(name=f"NVIDIA_{name}_GPUS", metric=f"{SERVICE}/nvidia_{name.lower()}_gpus")
    return Meter(
        name=f"NVIDIA_{name}_GPUS",
        metric=f"{SERVICE}/gpus_per_gpu_family",
        dimension=("gpu_family", f"NVIDIA_{name}"),
    )


def _preemptible(meter: Meter) -> Meter:
    service, _, metric = meter.metric.partition("/")
    return Meter(
        name=f"PREEMPTIBLE_{meter.name}",
        metric=f"{service}/preemptible_{metric}",
        dimension=meter.dimension,
    )

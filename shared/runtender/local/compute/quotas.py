"""Quota: how much of each meter a region, and the project, may use, and what the machines that are there use of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtender.local.compute.errors import OperationError, quota_exceeded
from runtender.local.compute.instances import Order

GPUS_ALL_REGIONS = "GPUS_ALL_REGIONS"

# Families with a meter of their own; all others share CPUS.
_CPU_METERS: Mapping[str, str] = {
    "n2": "N2_CPUS",
    "n2d": "N2D_CPUS",
    "c2": "C2_CPUS",
    "c3": "C3_CPUS",
    "a2": "A2_CPUS",
    "e2": "E2_CPUS",
}
# Metered by Service Usage only: regions.get does not know them.
_UNMETERED = frozenset({"n4", "c4"})
_GPU_METERS: Mapping[str, str] = {
    "nvidia-tesla-t4": "NVIDIA_T4_GPUS",
    "nvidia-l4": "NVIDIA_L4_GPUS",
    "nvidia-tesla-a100": "NVIDIA_A100_GPUS",
    "nvidia-a100-80gb": "NVIDIA_A100_80GB_GPUS",
}
_DISK_METERS: Mapping[str, str] = {
    "pd-standard": "DISKS_TOTAL_GB",
    "pd-balanced": "SSD_TOTAL_GB",
    "pd-ssd": "SSD_TOTAL_GB",
    "hyperdisk-balanced": "HDB_TOTAL_GB",
}
_DEFAULT_LIMITS: Mapping[str, float] = {
    "CPUS": 500,
    **dict.fromkeys(_CPU_METERS.values(), 500),
    **dict.fromkeys(_GPU_METERS.values(), 16),
    "PREEMPTIBLE_CPUS": 0,
    **{f"PREEMPTIBLE_{meter}": 16 for meter in _GPU_METERS.values()},
    "INSTANCES": 1000,
    "DISKS_TOTAL_GB": 100_000,
    "SSD_TOTAL_GB": 100_000,
    "HDB_TOTAL_GB": 100_000,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotas:
    """Limits. `by_region` overrides single meters of single regions; a meter without a limit is not enforced."""

    regional: Mapping[str, float] = field(default_factory=lambda: dict(_DEFAULT_LIMITS))
    by_region: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    gpus_all_regions: float = 16

    def limits(self, region: str) -> dict[str, float]:
        """Return the limits of a region."""
        return {**self.regional, **self.by_region.get(region, {})}

    def refusal(self, order: Order, present: Iterable[Order]) -> OperationError | None:
        """Say which limit `order` would break beside what is `present`; None when it fits."""
        machines = tuple(present)
        limits = self.limits(order.region)
        used = self.usage(order.region, machines)
        for meter, amount in self._demand(order).items():
            if meter in limits and used[meter] + amount > limits[meter]:
                return quota_exceeded(metric=meter, limit=limits[meter], region=order.region)
        gpus = sum(machine.accelerator_count for machine in machines)
        if order.accelerator_count and gpus + order.accelerator_count > self.gpus_all_regions:
            return quota_exceeded(metric=GPUS_ALL_REGIONS, limit=self.gpus_all_regions, region=None)
        return None

    def usage(self, region: str, present: Iterable[Order]) -> Counter[str]:
        """Add up what the machines of a region use."""
        used: Counter[str] = Counter()
        for order in present:
            if order.region == region:
                used.update(self._demand(order))
        return used

    def regional_rows(self, region: str, present: Iterable[Order]) -> list[dict[str, Any]]:
        """Return the `quotas` list of `regions.get`."""
        used = self.usage(region, present)
        return [
            {"metric": meter, "limit": float(limit), "usage": float(used[meter])}
            for meter, limit in sorted(self.limits(region).items())
        ]

    def project_rows(self, present: Iterable[Order]) -> list[dict[str, Any]]:
        """Return the `quotas` list of `projects.get`."""
        gpus = float(sum(order.accelerator_count for order in present))
        return [{"metric": GPUS_ALL_REGIONS, "limit": float(self.gpus_all_regions), "usage": gpus}]

    def _demand(self, order: Order) -> Counter[str]:
        disk = order.boot_disk
        demand = Counter({"INSTANCES": 1, _DISK_METERS[disk.type]: disk.size_gb})
        family = order.machine.family
        if family not in _UNMETERED:
            demand[self._meter(order, _CPU_METERS.get(family, "CPUS"), "PREEMPTIBLE_CPUS")] = (
                order.machine.cpus
            )
        if order.accelerator_count:
            meter = _GPU_METERS[order.accelerator_type]
            demand[self._meter(order, meter, f"PREEMPTIBLE_{meter}")] = order.accelerator_count
        return demand

    def _meter(self, order: Order, standard: str, preemptible: str) -> str:
        # A project without preemptible quota pays for Spot machines from the standard meter.
        granted = self.limits(order.region).get(preemptible, 0) > 0
        return preemptible if order.spot and granted else standard

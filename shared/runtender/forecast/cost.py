"""What a run can cost at most, and what it is expected to cost where its cells were measured.

At most: the platform itself ends a machine after its whole life time, so a job's machines never cost more than that time
does; looking for capacity costs nothing. Spot machines cost less than the same ones on demand, whose price is the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from runtender.forecast import machines
from runtender.forecast.catalogue import Catalogue
from runtender.forecast.prices import Price, Prices, RegionPrices
from runtender.forecast.validation import FieldReader
from runtender.model import JobPlan

_HOUR = timedelta(hours=1)
# Disks are billed by the month; Google counts it as 730 hours.
_HOURS_PER_MONTH = 730


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """What a job costs in US dollars; None where a price is not known, which `unknown` then names.

    `hourly_usd` is one machine's, `expected_usd` None also where nothing was measured.
    """

    machines: int
    hourly_usd: float | None
    at_most_usd: float | None
    expected_usd: float | None
    unknown: tuple[str, ...]
    notes: tuple[str, ...]
    read_on: str

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as it stands in a run's header and a shown plan."""
        return {
            "machines": self.machines,
            "hourly_usd": self.hourly_usd,
            "at_most_usd": self.at_most_usd,
            "expected_usd": self.expected_usd,
            "unknown": list(self.unknown),
            "notes": list(self.notes),
            "read_on": self.read_on,
        }


def estimate(plan: JobPlan, prices: Prices, catalogue: Catalogue, *, time_scale: float = 1.0) -> Estimate:
    """Return what a job costs, by the dearest of its placements' regions.

    The plan's spans are scaled like the settings (`time_scale`); costs are told for real time.
    """
    if plan.kubernetes is not None and plan.kubernetes.node_machine_type:
        # A pod has a node to itself, as large as that is.
        plan = replace(plan, machine_type=plan.kubernetes.node_machine_type)
    regions = sorted({placement.region for placement in plan.placements})
    found = [_hourly(plan, prices.get(region), region, catalogue) for region in regions]
    unknown = tuple(dict.fromkeys(name for one in found for name in one.unknown))
    hourly = None if unknown or not found else max(one.usd for one in found)
    workers = max(1, plan.worker_count)
    life = plan.max_run_duration
    if plan.runtime == "gke":
        # Nodes may be there while the rest of them is waited for.
        life += plan.capacity_wait
    hours = life * time_scale / _HOUR
    wall = (plan.resource_plan or {}).get("wall_estimate_s")
    return Estimate(
        machines=workers,
        hourly_usd=_cents(hourly),
        at_most_usd=None if hourly is None else _cents(hourly * workers * hours),
        expected_usd=None if hourly is None or wall is None else _cents(hourly * workers * wall / 3600),
        unknown=unknown,
        notes=_notes(plan),
        read_on=min((one.read_on for one in found if one.read_on), default=""),
    )


def _notes(plan: JobPlan) -> tuple[str, ...]:
    spot = ("Spot: the on-demand price is the bound",) if plan.spot else ()
    cluster = ("the fee of a cluster and its system nodes are not counted",) if plan.runtime == "gke" else ()
    return (*spot, *cluster)


def total(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    """Return a run's cost: the sum over its families, None while one of them is not known."""
    at_most = [one.at_most_usd for one in estimates.values()]
    known = [amount for amount in at_most if amount is not None]
    return {
        "currency": "USD",
        "at_most_usd": _cents(sum(known)) if len(known) == len(at_most) else None,
        "families": {family: one.to_json() for family, one in estimates.items()},
    }


def check_cap(reader: FieldReader, cap_usd: float | None, estimates: Mapping[str, Estimate]) -> None:
    """Fault a run that may cost more than its cap, or whose cost nobody can tell."""
    if cap_usd is None:
        return
    field = "limits.cost_usd"
    unknown = [f"{family}: {name}" for family, one in estimates.items() for name in one.unknown]
    if unknown:
        problem = f"CostCap: the price of {', '.join(unknown)} is not known, so the cap cannot be kept"
        reader.fault(field, problem, "add it to the price table (SF_PRICES), or leave the cap out")
        return
    at_most = sum(one.at_most_usd or 0.0 for one in estimates.values())
    if at_most > cap_usd:
        problem = f"CostCap: the run may cost ${at_most:,.2f}, the cap is ${cap_usd:,.2f}"
        reader.fault(field, problem, "raise the cap, shorten `limits.run`, or choose smaller machines")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sum:
    usd: float
    unknown: tuple[str, ...]
    read_on: str


def _hourly(plan: JobPlan, prices: RegionPrices | None, region: str, catalogue: Catalogue) -> _Sum:
    """Return one machine's price for an hour, its boot disk included."""
    if prices is None:
        return _Sum(usd=0.0, unknown=(f"anything in {region}",), read_on="")
    parts = {
        **_machine(plan, prices, catalogue),
        f"{plan.disk_type} disk": (
            prices.disk_gib_month.get(plan.disk_type),
            plan.boot_disk_gb / _HOURS_PER_MONTH,
        ),
    }
    return _Sum(
        usd=sum(price.usd * amount for price, amount in parts.values() if price is not None),
        unknown=tuple(f"{name} in {region}" for name, (price, _) in parts.items() if price is None),
        read_on=min((price.read_on for price, _ in parts.values() if price is not None), default=""),
    )


def _machine(
    plan: JobPlan, prices: RegionPrices, catalogue: Catalogue
) -> dict[str, tuple[Price | None, float]]:
    name = plan.machine_type
    if name in prices.machine_hour:
        return {name: (prices.machine_hour[name], 1)}
    series = machines.machine_family(name)
    shape = machines.shape_of(name, catalogue)
    if catalogue.family_of(name).with_gpus or not shape.memory_bytes:
        return {name: (None, 1)}
    parts: dict[str, tuple[Price | None, float]] = {
        f"{series} vCPUs": (prices.vcpu_hour.get(series), shape.vcpus),
        f"{series} memory": (prices.gib_hour.get(series), shape.memory_bytes / 1024**3),
    }
    if plan.accelerator_count:
        gpu = plan.accelerator_type
        parts[gpu] = (prices.accelerator_hour.get(gpu), plan.accelerator_count)
    return parts


def _cents(amount: float | None) -> Any:
    return None if amount is None else round(amount, 4)

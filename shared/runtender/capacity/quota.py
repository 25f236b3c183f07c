"""Is there quota for a plan, region by region? Asked before the first create, because a refusal costs a placement.

What is not known never blocks anything. A meter that cannot carry even one unit blocks its region; one that carries fewer
than the most that were asked for is clamped if it counts this job's pool alone, and only told of if it is shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from runtender.capacity.demands import Demand, Sharing
from runtender.observed import Reading

Readings = Mapping[str, Reading]
"""What was read of a region's meters, by their names; those that could not be read are missing."""


_MINUTE_S = 60
_HOUR_MINUTES = 60


class Status(StrEnum):
    """What a meter's room means for a demand."""

    OK = "OK"
    CLAMPED = "CLAMPED"
    BLOCKED = "BLOCKED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One demand against one meter. `advisory`: it fits, but not as large as it might become."""

    status: Status
    demand: Demand
    region: str
    meter: str
    metric: str
    limit: int | None
    usage: int | None
    min_units: int
    max_units: int
    detail: str
    advisory: bool = False

    @property
    def autoscale_viable(self) -> bool:
        """False where a clamped pool is one unit, and so cannot scale."""
        return self.status is not Status.CLAMPED or self.max_units > 1

    @property
    def worth_telling(self) -> bool:
        """True for everything except a clean OK."""
        return self.status is not Status.OK or self.advisory

    def to_json(self) -> dict[str, Any]:
        """Return the outcome in the keys that readers of a ledger know."""
        return {
            "status": self.status.value,
            "advisory": self.advisory,
            "pool": self.demand.sharing.value,
            "region": self.region,
            "metric": self.metric,
            "limit": self.limit,
            "usage": self.usage,
            "asked_min_units": self.demand.min_units,
            "asked_max_units": self.demand.max_units,
            "min_units": self.min_units,
            "max_units": self.max_units,
            "autoscale_viable": self.autoscale_viable,
            "detail": self.detail,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class RegionVerdict:
    """All outcomes of one region."""

    region: str
    outcomes: tuple[Outcome, ...]
    advice: tuple[str, ...] = ()

    @property
    def blocked(self) -> bool:
        """True when some meter has no room for even one unit."""
        return any(outcome.status is Status.BLOCKED for outcome in self.outcomes)

    @property
    def clamped(self) -> bool:
        """True when some meter has room for fewer units than were asked for at most."""
        return any(outcome.status is Status.CLAMPED for outcome in self.outcomes)

    @property
    def max_units(self) -> int | None:
        """The most units that every clamped meter has room for; None where none is clamped."""
        return min((one.max_units for one in self.outcomes if one.status is Status.CLAMPED), default=None)

    @property
    def worth_telling(self) -> bool:
        """True when there is something that a reader of the run should know."""
        return any(one.worth_telling and one.status is not Status.UNKNOWN for one in self.outcomes)

    @property
    def why_blocked(self) -> str:
        """What blocks the region, in words; empty where nothing does."""
        return "; ".join(one.detail for one in self.outcomes if one.status is Status.BLOCKED)

    def to_json(self) -> dict[str, Any]:
        """Return the verdict in the keys that readers of a ledger know."""
        return {
            "region": self.region,
            "blocked": self.blocked,
            "clamped": self.clamped,
            "outcomes": [outcome.to_json() for outcome in self.outcomes],
            "advice": list(self.advice),
        }


def judge(region: str, demands: Iterable[Demand], readings: Readings) -> RegionVerdict:
    """Weigh a plan's demands against what was read of a region's meters."""
    outcomes = tuple(weigh(demand, region, readings) for demand in demands)
    return RegionVerdict(region=region, outcomes=outcomes, advice=_advice(outcomes))


def weigh(demand: Demand, region: str, readings: Readings) -> Outcome:
    """Weigh one demand against its meter."""
    meter, reading = demand.meter, readings.get(demand.meter.name, Reading())
    if demand.standard is not None and reading.limit is not None and reading.limit <= 0:
        meter, reading = demand.standard, readings.get(demand.standard.name, Reading())
    status, most, words, advisory = _room(demand, reading)
    least = min(demand.min_units, most)
    if status is Status.CLAMPED and least >= most > 1:
        # A pool whose bounds meet cannot scale by itself.
        least = most - 1
    where = "over all regions" if meter.everywhere else f"in {region}"
    return Outcome(
        status=status,
        demand=demand,
        region=region,
        meter=meter.name,
        metric=meter.metric,
        limit=reading.limit,
        usage=reading.usage,
        min_units=least,
        max_units=most,
        advisory=advisory,
        detail=f"{meter.name} {where}: {words}",
    )


def _room(demand: Demand, reading: Reading) -> tuple[Status, int, str, bool]:
    """Return status, most units, why, and whether it is only advice. All but CLAMPED keep the bounds asked for."""
    asked = demand.max_units
    if reading.limit is None:
        return Status.UNKNOWN, asked, "the limit is not known", False
    free = reading.limit - (reading.usage or 0)
    room = f"{max(0, free)} of {reading.limit} {demand.unit} free"
    least = demand.amount(demand.min_units)
    if demand.per_unit <= 0:
        fits = reading.limit > 0 and demand.fixed <= free
        return (Status.OK if fits else Status.BLOCKED), asked, f"{demand.fixed} needed, {room}", False
    units = max(0, (free - demand.fixed) // demand.per_unit)
    if free <= 0 or units < 1 or (demand.sharing is Sharing.SHARED and units < demand.min_units):
        return Status.BLOCKED, asked, f"{least} needed, {room}", False
    if units >= asked:
        return Status.OK, asked, f"{demand.amount(asked)} needed, {room}", False
    words = f"{demand.amount(asked)} asked for at most, {room}: enough for {units} of {asked} units"
    if demand.sharing is Sharing.SHARED:
        return Status.OK, asked, f"{words}; not clamped, since others use the meter too", True
    return Status.CLAMPED, units, words, False


def _advice(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    lines = []
    for outcome in outcomes:
        if outcome.status not in {Status.BLOCKED, Status.CLAMPED} or outcome.limit is None:
            continue
        clamped = outcome.status is Status.CLAMPED
        needed = outcome.demand.amount(outcome.demand.max_units if clamped else outcome.demand.min_units)
        if needed <= outcome.limit:
            lines.append(f"wait until less of {outcome.meter} is in use, or use another region")
        else:
            total = needed + (outcome.usage or 0)
            lines.append(f"ask for {total} or more of {outcome.meter}, or use another region or machine")
    return tuple(dict.fromkeys(lines))


def render(verdict: RegionVerdict) -> tuple[str, ...]:
    """Return what a person should read of a verdict: a line per outcome that is no clean OK, then advice."""
    told = [f"quota [{one.status}] {one.detail}" for one in verdict.outcomes if one.worth_telling]
    return (*told, *verdict.advice)


def wall_estimate(cells: int, cell_s: float | None, slots: int, units: int) -> float | None:
    """Return the seconds that all cells take on so many units; None where a cell's time was never measured."""
    return None if cell_s is None else cells * cell_s / (slots * units)


def span_text(seconds: float) -> str:
    """Return a span as a person says it: `45s`, `2m`, `1h15m`."""
    if seconds < _MINUTE_S:
        return f"{seconds:.0f}s"
    # Halves are rounded up, as people do: 90 s are 2m.
    minutes = int(seconds / _MINUTE_S + 0.5)
    if minutes < _HOUR_MINUTES:
        return f"{minutes}m"
    return f"{minutes // _HOUR_MINUTES}h{minutes % _HOUR_MINUTES:02d}m"

"""Quota as a plan meets it: read once for every region that it may use, and said in full before anything is submitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from runtender.capacity.demands import demands_of, meters_of
from runtender.capacity.quota import (
    Outcome,
    Readings,
    RegionVerdict,
    Status,
    render,
    span_text,
    wall_estimate,
)
from runtender.decide.preflight import Preflight, preflight
from runtender.model import JobPlan
from runtender.ports import Quota


class Room(StrEnum):
    """What quota has for a plan: room in every region, in some, in none; or nobody knows."""

    ENOUGH = "ENOUGH"
    SOME = "SOME"
    NONE = "NONE"
    UNKNOWN = "UNKNOWN"


def read_quota(port: Quota, plans: Iterable[JobPlan]) -> Mapping[str, Readings]:
    """Return what the meters of each region say, for every machine that a plan may use there; never raises.

    A region whose meters cannot be read is missing, and so are those after it: whatever is the matter, nobody waits for as
    many time-outs as there are regions.
    """
    machines = [(place.region, plan.at(place)) for plan in plans for place in plan.placements]
    meters = dict.fromkeys(meter for _, plan in machines for meter in meters_of(demands_of(plan)))
    found: dict[str, Readings] = {}
    for region in dict.fromkeys(region for region, _ in machines):
        readings = port.read(region, meters)
        if not readings:
            break
        found[region] = readings
    return found


def quota_document(plan: JobPlan, quota: Mapping[str, Readings]) -> dict[str, Any]:
    """Return what quota means for a plan, as JSON: the whole, then each region and machine with all its meters.

    `asked`: whether the plane would look at quota at all. `waits`: whether a run without quota waits for it.
    """
    found = preflight(plan, quota)
    return {
        "room": _room(plan, found).value,
        "asked": plan.walk.preflight,
        "waits": plan.walk.wait_for_quota,
        "regions": [
            _region_document(plan, machine, verdict) for (_, machine), verdict in found.verdicts.items()
        ],
    }


def _room(plan: JobPlan, found: Preflight) -> Room:
    blocked = [found.blocks(place) for place in plan.placements]
    if blocked and all(blocked):
        return Room.NONE
    if any(blocked):
        return Room.SOME
    outcomes = [outcome for verdict in found.verdicts.values() for outcome in verdict.outcomes]
    return Room.UNKNOWN if all(one.status is Status.UNKNOWN for one in outcomes) else Room.ENOUGH


def _region_document(plan: JobPlan, machine: str, verdict: RegionVerdict) -> dict[str, Any]:
    told = [*render(verdict), *_slower(plan, verdict)]
    return {
        **verdict.to_json(),
        "machine": machine,
        "outcomes": [_outcome_document(one) for one in verdict.outcomes],
        "lines": told,
    }


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    demand = outcome.demand
    return {
        "meter": outcome.meter,
        "unit": demand.unit,
        "needed": demand.amount(demand.max_units),
        **outcome.to_json(),
    }


def _slower(plan: JobPlan, verdict: RegionVerdict) -> tuple[str, ...]:
    """Say how much longer a clamped pool would take, where the time of a cell was measured."""
    most, sizing = verdict.max_units, plan.resource_plan or {}
    cell_s, slots = sizing.get("seconds_per_cell"), sizing.get("slots_per_unit")
    asked = max(1, plan.worker_count)
    if most is None or not slots:
        return ()
    clamped, whole = (
        wall_estimate(sizing["n_cells"], cell_s, slots=slots, units=units) for units in (most, asked)
    )
    if clamped is None or whole is None:
        return ()
    told = f"the work takes about {span_text(clamped)} instead of {span_text(whole)}"
    return (f"on {most} of {asked} machines {told}",)

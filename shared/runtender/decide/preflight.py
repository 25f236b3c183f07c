"""Quota before each pass of the walk: regions without room are left out of it, and a walk that has no other place ends.

Only what was read to be too little counts. A quota that is used up may become free again, so a region is left out of one
pass and looked at anew before the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtender.capacity.demands import demands_of
from runtender.capacity.quota import Readings, RegionVerdict, judge
from runtender.model import JobPlan, Placement


@dataclass(frozen=True, kw_only=True, slots=True)
class Preflight:
    """The verdict on each region that a plan may use, by region and machine, in the order of its placements."""

    verdicts: Mapping[tuple[str, str], RegionVerdict]

    @property
    def blocked(self) -> bool:
        """True when some region has no room for some machine."""
        return any(verdict.blocked for verdict in self.verdicts.values())

    def blocks(self, placement: Placement) -> bool:
        """True when there is no room for the placement's machine in its region."""
        return self.verdicts[placement.region, placement.machine_label].blocked

    @property
    def why(self) -> str:
        """What blocks them, and what can be done about it."""
        blocked = [verdict for verdict in self.verdicts.values() if verdict.blocked]
        told = [line for verdict in blocked for line in (verdict.why_blocked, *verdict.advice)]
        return "; ".join(dict.fromkeys(told))

    def to_json(self) -> tuple[dict[str, object], ...]:
        """Return what a reader of the job should know; nothing of regions that have room."""
        return tuple(verdict.to_json() for verdict in self.verdicts.values() if verdict.worth_telling)


def preflight(plan: JobPlan, quota: Mapping[str, Readings]) -> Preflight:
    """Judge every region of a plan, for every machine that it may use there, by what was read of the region's meters."""
    machines = {(one.region, one.machine_label): demands_of(plan.at(one)) for one in plan.placements}
    return Preflight(
        verdicts={
            (region, machine): judge(region, demands, quota.get(region, {}))
            for (region, machine), demands in machines.items()
        }
    )

"""Quota before each pass of the walk: regions without room are left out of it, and a walk that has no other place ends.

Only what was read to be too little counts. A quota that is used up may become free again, so a region is left out of one
pass and looked at anew before the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtender.capacity.demands import demands_of
from runtender.capacity.quota import Readings, RegionVerdict, judge
from runtender.model import JobPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class Preflight:
    """The verdict on each region that a plan may use, in the order of its placements."""

    verdicts: tuple[RegionVerdict, ...]

    @property
    def blocked(self) -> frozenset[str]:
        """Regions without room for the job."""
        return frozenset(verdict.region for verdict in self.verdicts if verdict.blocked)

    @property
    def why(self) -> str:
        """What blocks them, and what can be done about it."""
        told = [line for one in self.verdicts if one.blocked for line in (one.why_blocked, *one.advice)]
        return "; ".join(dict.fromkeys(told))

    def to_json(self) -> tuple[dict[str, object], ...]:
        """Return what a reader of the job should know; nothing of regions that have room."""
        return tuple(verdict.to_json() for verdict in self.verdicts if verdict.worth_telling)


def preflight(plan: JobPlan, quota: Mapping[str, Readings]) -> Preflight:
    """Judge every region of a plan by what was read of its meters."""
    demands = demands_of(plan)
    regions = dict.fromkeys(placement.region for placement in plan.placements)
    return Preflight(verdicts=tuple(judge(region, demands, quota.get(region, {})) for region in regions))

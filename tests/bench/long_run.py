"""What a run costs the plane while it works, for as long as it does: each further look at it, and an hour of them.

Run by `run.py`; prints its figures as JSON. The counts are exact and the same everywhere, see `world.py`. Beside an hour of
ours stands that of a client which waits by polling: the marker and the machine, each every 10 s.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.bench.figures import figure, listed
from tests.bench.machine_guest import MachineGuest
from tests.bench.world import World

from runtender.model import Phase

_TICKS_PER_HOUR = 60
_RUN_LENGTH = timedelta(hours=1, minutes=30)
_TICKS_UNTIL_IT_RUNS = 5
# All jobs share it: one list a minute shows every machine of the plane.
_FLEET_LIST = "compute.instances.aggregatedList"
_POLLED = 2
_POLL_S = 10
_POLLED_PER_HOUR = _POLLED * 3600 // _POLL_S


def measure() -> tuple[list[Counter[str]], Counter[str]]:
    """Watch an hour in the middle of a run; return the bills of the ticks that looked at it, and of all ticks together."""
    world = World()
    job_key = world.submit()
    guest = MachineGuest(world, job_key, _RUN_LENGTH)
    for _ in range(_TICKS_UNTIL_IT_RUNS):
        world.live_through_minute(guest)
        world.tick()
    looks, hour = [], Counter[str]()
    world.tally.take()
    for _ in range(_TICKS_PER_HOUR):
        world.live_through_minute(guest)
        looked, bill = world.tick(), world.tally.take()
        hour += bill
        if looked:
            looks.append(bill)
    if world.job(job_key).phase is not Phase.RUNNING:
        raise SystemExit(f"the run did not work for an hour: {world.job(job_key)}")
    return looks, hour


def figures() -> list[dict[str, Any]]:
    """Return what a look costs, and what an hour does."""
    looks, hour = measure()
    shared = hour.pop(_FLEET_LIST)
    for look in looks:
        del look[_FLEET_LIST]
    dearest = max(looks, key=_calls)
    own = _calls(hour)
    return [
        figure("calls per further look", _calls(dearest), aim=2, detail=listed(_without_store(dearest))),
        figure("document reads per further look", max(look["store.read"] for look in looks), aim=2),
        figure("document writes per further look", max(look["store.write"] for look in looks), aim=2),
        figure("calls per hour of a running job", own, detail=f"{len(looks)} looks"),
        figure("calls per hour of the ticks", shared, detail="the list of the fleet, shared by all jobs"),
        figure("calls per hour of a polling client", _POLLED_PER_HOUR, detail="marker and machine each 10 s"),
        figure(
            "the plane's calls for that hour against its", round((own + shared) / _POLLED_PER_HOUR, 2), unit="x", aim=1,
            detail=f"of one job; of 100 jobs {(100 * own + shared) / (100 * _POLLED_PER_HOUR):.3f} x",
        ),
    ]  # fmt: skip


def _calls(bill: Mapping[str, int]) -> int:
    return sum(_without_store(bill).values())


def _without_store(bill: Mapping[str, int]) -> dict[str, int]:
    return {call: times for call, times in sorted(bill.items()) if not call.startswith("store.")}


if __name__ == "__main__":
    print(json.dumps(figures()))

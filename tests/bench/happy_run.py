"""What one undisturbed run costs the plane in calls: the first placement has capacity, the worker does its work and leaves.

Run by `run.py`; prints its figures as JSON. The counts are exact and the same everywhere, see `world.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from typing import Any

from tests.bench.figures import calls_of, figure, listed
from tests.bench.machine_guest import MachineGuest
from tests.bench.world import World

from runtender.model import Outcome, Phase

# Below the watch interval, so that the plane has no reason of its own to look at the running job.
RUN_LENGTH = timedelta(minutes=8)
_MOST_TICKS = 60
_POLL = "compute.zoneOperations.get"
_QUOTA = ("compute.regions.get", "compute.projects.get", "serviceusage.services.consumerQuotaMetrics.get")


def measure() -> tuple[Counter[str], Counter[str], int]:
    """Run from submit to rest; return the run's calls, those of its idle ticks, and how many of these there were."""
    world = World()
    job_key = world.submit()
    guest = MachineGuest(world, job_key, RUN_LENGTH)
    of_run, of_idle_ticks, idle_ticks = Counter[str](), Counter[str](), 0
    for _ in range(_MOST_TICKS):
        world.live_through_minute(guest)
        of_run += world.tally.take()
        if world.tick():
            of_run += world.tally.take()
        else:
            of_idle_ticks += world.tally.take()
            idle_ticks += 1
        job = world.job(job_key)
        if (job.phase, job.outcome) == (Phase.DONE, Outcome.SUCCEEDED):
            return of_run, of_idle_ticks, idle_ticks
    raise SystemExit(f"after {_MOST_TICKS} ticks the run has not come to its happy end: {world.job(job_key)}")


def figures() -> list[dict[str, Any]]:
    """Return the bill of one run."""
    run, idle, ticks = measure()
    polls, quota = run.pop(_POLL), sum(run.pop(method, 0) for method in _QUOTA)
    compute, storage, publishes = (
        calls_of(f"{service}.", run) for service in ("compute", "storage", "pubsub")
    )
    return [
        figure("store commits per run", run["store.commit"], aim=10),
        figure("document reads per run", run["store.read"], aim=12),
        figure("Compute Engine calls per run", sum(compute.values()), aim=6, detail=listed(compute)),
        figure("polls of its operation", polls, detail="zoneOperations.get, while the insert is awaited"),
        figure("looks at quota before it begins", quota, detail="kept for 10 s: a burst asks once"),
        figure("Cloud Storage calls per run", sum(storage.values()), detail=listed(storage)),
        figure("messages published per run", sum(publishes.values())),
        figure("calls per idle tick", sum(idle.values()) // ticks, detail=listed(idle, ticks)),
    ]


if __name__ == "__main__":
    print(json.dumps(figures()))

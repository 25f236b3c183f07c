"""What an undisturbed run by many workers on a standing cluster costs the plane in calls, from submit to rest.

Run by `run.py`; prints its figures as JSON. The counts are exact and the same everywhere, see `world.py`. Calls to the GKE and
Kubernetes APIs are counted where they arrive. What the events of the workers' markers cost stands apart: there are twice as many
of them as workers, and `index_storm.py` is about them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.bench.figures import calls_of, figure, listed
from tests.bench.pod_guests import PodGuests
from tests.bench.world import CONFIG, World, has_come_to_its_happy_end

FEW, MANY = 4, 100
# The first two are no longer than the watch interval: the plane has no reason of its own to look at the job while it runs.
SHORT, MEDIUM = timedelta(minutes=3), timedelta(minutes=10)
LONG_HOURS = 3

_MOST_TICKS = 240
_MOST_CALLS = 8
_MOST_CALLS_PER_LOOK = 3
_PODS_PER_PAGE = 100
# All jobs share these: a list a minute of every machine of the plane and of every Job on the cluster, and a question each five
# minutes where the cluster is.
_SHARED = ("compute.instances.aggregatedList", "kubernetes.jobs.list")
_WHERE = "container.projects.locations.clusters.get"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bill:
    """The calls of one job: those that the events of its markers led to, event by event, and all others."""

    others: Counter[str]
    by_event: tuple[Counter[str], ...]

    @property
    def of_events(self) -> Counter[str]:
        """What all events cost together."""
        return sum(self.by_event, Counter())

    @property
    def steps(self) -> int:
        """How many events took a step."""
        return sum(bool(cluster_calls(bill)) for bill in self.by_event)


def measure(workers: int, length: timedelta) -> Bill:
    """Run from submit to rest."""
    world = World(nodes=workers)
    job_key = world.submit(config_of(workers))
    bill, by_event = world.tally.take(), list[Counter[str]]()

    def tell(marker: str) -> None:
        with world.tally.apart() as of_event:
            world.notify(marker)
        by_event.append(of_event)

    guests = PodGuests(world, job_key, length, tell)
    for _ in range(_MOST_TICKS):
        world.live_through_minute(guests)
        looked, of_tick = world.tick(), world.tally.take()
        if looked:
            bill += of_tick
        if has_come_to_its_happy_end(world.job(job_key)):
            for shared in _SHARED:
                del bill[shared]
            return Bill(others=bill, by_event=tuple(by_event))
    raise SystemExit(f"after {_MOST_TICKS} ticks the job has not come to its happy end: {world.job(job_key)}")


def config_of(workers: int) -> dict[str, Any]:
    """Return the config of a run by so many workers."""
    return {**CONFIG, "python_runtime": "gke", "compute": {"workers": workers}}


def cluster_calls(bill: Mapping[str, int]) -> dict[str, int]:
    """Return the calls to GKE and Kubernetes on a bill."""
    return calls_of(("container.", "kubernetes."), bill)


def figures(hours: int) -> list[dict[str, Any]]:
    """Return the bills of a job of few workers and of one of many, and how they grow when it takes so many hours."""
    return [one for workers in (FEW, MANY) for one in _of_job(workers, hours)]


def _of_job(workers: int, hours: int) -> list[dict[str, Any]]:
    bill, of = measure(workers, MEDIUM), f"of {workers} workers"
    calls, events = cluster_calls(bill.others), bill.of_events
    pages = sum(times for method, times in calls.items() if method.endswith(".list"))
    storage = calls_of("storage.", bill.others)
    told = f"{len(bill.by_event)} events, {bill.steps} steps"
    return [
        figure(
            f"GKE and Kubernetes calls per job {of}",
            sum(calls.values()),
            aim=_MOST_CALLS,
            detail=listed(calls),
        ),
        figure(f"list pages among them, {of}", pages, aim=1 + workers // _PODS_PER_PAGE),
        figure(f"further calls by index events, {of}", sum(cluster_calls(events).values()), detail=told),
        figure(f"Cloud Storage calls per job {of}", sum(storage.values()), detail=listed(storage)),
        figure(
            f"further ones by index events, {of}", sum(calls_of("storage.", events).values()), detail=told
        ),
        figure(f"store commits per job {of}", bill.others["store.commit"]),
        figure(f"document reads per job {of}", bill.others["store.read"]),
        *_by_length(workers, hours, bill.others),
    ]


def _by_length(workers: int, hours: int, medium: Counter[str]) -> list[dict[str, Any]]:
    """Return how the bill grows with the length of the run."""
    short, long = (measure(workers, length).others for length in (SHORT, timedelta(hours=hours)))
    more = sum((medium - short).values())
    further = long - medium
    looks = further["kubernetes.jobs.get"]
    where = further.pop(_WHERE)
    calls = {method: times for method, times in further.items() if not method.startswith("store.")}
    return [
        figure(f"calls more for 10 minutes than for 3, {workers} workers", more, aim=0),
        figure(
            f"calls per further look at a job of {workers} workers",
            round(sum(calls.values()) / looks, 1),
            aim=_MOST_CALLS_PER_LOOK,
            detail=f"{looks} looks in {hours} h; and {where} times to ask where the cluster is, for all its jobs",
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=LONG_HOURS, help="how long a long run takes")
    print(json.dumps(figures(parser.parse_args().hours)))

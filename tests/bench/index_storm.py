"""A storm of index events: a thousand workers of one job end within a minute, and the event of each wakes a handler.

Run by `run.py`; prints its figures as JSON. The counts are exact and the same everywhere: handlers overlap on told time, see
`overlap.py`. An event that takes no step costs what it takes to see that none is called for.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

from tests.bench.figures import figure, listed
from tests.bench.indexed_job import cluster_calls, config_of
from tests.bench.overlap import CONFLICTS, Handler, Overlap
from tests.bench.pod_guests import PodGuests
from tests.bench.world import TICK, World, has_come_to_its_happy_end

from runtender.engine import Engine
from runtender.ids import MarkerName, parse_marker_object

WORKERS = 1000
# One look each ten seconds, and one at either end.
_MOST_STEPS = 7
_RUN_LENGTH = timedelta(minutes=4)
_MOST_TICKS = 20
_SECOND = timedelta(seconds=1)


def measure(workers: int) -> list[Handler]:
    """Run a job from submit to rest; return the handlers of the events that told of its workers' ends."""
    world = World(nodes=workers)
    job_key = world.submit(config_of(workers))
    overlap, chance, ends = Overlap(world.clock), Random(0), list[Handler]()
    engine = Engine(overlap.tap(world.plane))

    def tell(marker: str) -> None:
        where = parse_marker_object(marker)
        assert where is not None
        # Events take a while to be delivered, and not all the same.
        at = world.clock.now() + _SECOND * chance.random()
        handler = overlap.begin(at, partial(_handle, engine, where))
        if where.stage == "terminal":
            ends.append(handler)

    guests = PodGuests(world, job_key, _RUN_LENGTH, tell)
    for _ in range(_MOST_TICKS):
        for _ in range(TICK // _SECOND):
            guests.live()
            overlap.run(world.clock.now() + _SECOND)
        world.tick()
        if has_come_to_its_happy_end(world.job(job_key)):
            return ends
    raise SystemExit(f"after {_MOST_TICKS} ticks the job has not come to its happy end: {world.job(job_key)}")


def _handle(engine: Engine, where: MarkerName) -> None:
    engine.notice(where)


def figures(workers: int) -> list[dict[str, Any]]:
    """Return what the events cost."""
    ends = measure(workers)
    steps = [handler for handler in ends if cluster_calls(handler.calls)]
    others = [handler for handler in ends if not cluster_calls(handler.calls)]
    single = sum(sum(handler.calls.values()) == 1 for handler in others)
    lost = sum(handler.calls[CONFLICTS] for handler in ends)
    return [
        figure(
            "calls per index event that takes no step",
            round(sum(_all_calls(others).values()) / len(others), 1),
            aim=1,
            detail=f"{single:,} of {len(others):,} cost one read, the others found their turn taken",
        ),
        figure(
            f"steps of {workers:,} index events in a minute",
            len(steps),
            aim=_MOST_STEPS,
            detail=f"together: {listed(_all_calls(steps))}",
        ),
        figure(
            f"conflicts among {workers:,} index events",
            lost,
            aim=workers // 100,
            detail="each handler overlaps others",
        ),
    ]


def _all_calls(handlers: Sequence[Handler]) -> dict[str, int]:
    calls = sum((handler.calls for handler in handlers), Counter[str]())
    del calls[CONFLICTS]
    return dict(sorted(calls.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=WORKERS)
    print(json.dumps(figures(parser.parse_args().workers)))

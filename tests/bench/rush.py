"""A rush on the local cloud, with real processes: many submits within seconds, under a budget of creates and a limit on what
is alive. Prints how long it took, whether all were settled, and whether budget, limit and order were kept meanwhile.

    python -m tests.bench.rush --runs 1000 --spread 10 --alive 20 --budget 200

Each run is a task on a machine of its own, which boots, runs the startup script, and is removed. While they run, `runtender list`
is asked for the queue. `tests.bench.run` leaves this one out: a thousand machines take two cores some ten minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from runtender.local.cloud import LocalCloud
from runtender.local.environment import clean_environment
from runtender.local.scenario import Scenario
from runtender.model import Job, Outcome, Phase
from runtender.wire.documents import job_from_document

_PUBLISHERS = 8
_MOST_JOBS = 10_000
_LOOK_S = 1.0
_LIST_EVERY_S = 15.0
_PROCESS_END_S = 5.0
# Taking in a submit is a few commits, which take a moment where a thousand are taken in at once: who is not in the queue
# yet cannot be overtaken in it.
_TAKEN_IN = timedelta(seconds=5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rush:
    """What is asked: so many submits, spread over some seconds, and what may be alive and created at once."""

    runs: int
    spread_s: float
    alive: int
    budget: int
    time_scale: float
    patience_s: float

    @property
    def scenario(self) -> Scenario:
        """Fair weather, with the limits."""
        plane = {
            "SF_API_BUDGET": str(self.budget),
            "SF_LIMITS": json.dumps([{"jobs": self.alive}]),
            # As in the cloud: a local one has every job looked at with every tick, and here a thousand of them wait.
            "SF_WATCH_INTERVAL_S": "600",
        }
        return Scenario(name="rush", plane=plane)


@dataclass(kw_only=True, slots=True)
class Watch:
    """What was seen meanwhile: the most machines, and each queue that was listed, as runs by their places."""

    machines: int = 0
    queues: list[Mapping[str, int]] = field(default_factory=list)


def main() -> None:
    """Play one rush and print its figures."""
    parser = argparse.ArgumentParser(prog="tests.bench.rush", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="how many submits")
    parser.add_argument("--spread", type=float, default=10.0, help="over how many seconds they are published")
    parser.add_argument("--alive", type=int, default=20, help="how many jobs may be alive at once")
    parser.add_argument(
        "--budget", type=int, default=200, help="how many creates a minute of the plane may see"
    )
    parser.add_argument("--time-scale", type=float, default=20.0, help="how much faster than real time")
    parser.add_argument("--patience", type=float, default=3600.0, help="give up after so many seconds")
    options = parser.parse_args()
    rush = Rush(
        runs=options.runs,
        spread_s=options.spread,
        alive=options.alive,
        budget=options.budget,
        time_scale=options.time_scale,
        patience_s=options.patience,
    )
    with tempfile.TemporaryDirectory(prefix="runtender-rush-") as folder:
        print(json.dumps(play(rush, Path(folder)), indent=2))


def play(rush: Rush, folder: Path) -> list[dict[str, Any]]:
    """Play a rush in a local cloud of its own; return its figures."""
    with LocalCloud(
        folder / "cloud", logs=folder / "logs", scenario=rush.scenario, time_scale=rush.time_scale
    ) as cloud:
        began = time.monotonic()
        _publish(rush, cloud)
        published_s = time.monotonic() - began
        watch = Watch()
        jobs = _settled(rush, cloud, watch, began)
        took_s = time.monotonic() - began
        left = _left_over(cloud)
        inserts = cloud.calls()["compute.instances.insert"]
    return _figures(rush, jobs, watch, Times(published_s=published_s, took_s=took_s), left, inserts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """Seconds of real time: until all was published, and until all was at rest."""

    published_s: float
    took_s: float


def _publish(rush: Rush, cloud: LocalCloud) -> None:
    began = time.monotonic()

    def send(number: int) -> None:
        time.sleep(max(0.0, began + rush.spread_s * number / rush.runs - time.monotonic()))
        config = {"name": f"task-{number:04d}", "command": ["true"]}
        message = {"kind": "task", "request_id": f"rush-{number:04d}", "config": config}
        cloud.topics.publish(cloud.settings.submit_topic, json.dumps(message).encode(), {})

    with ThreadPoolExecutor(max_workers=_PUBLISHERS) as pool:
        list(pool.map(send, range(rush.runs)))


def _settled(rush: Rush, cloud: LocalCloud, watch: Watch, began: float) -> list[Job]:
    """Wait until every job is at rest, or too long; return all of them."""
    listed_at = began
    # All jobs are read each time: the more there are, the less often.
    pause_s = _LOOK_S * (1 + rush.runs // 250)
    while True:
        jobs = [job_from_document(found.data) for found in cloud.store.find("jobs", limit=_MOST_JOBS)]
        done = sum(job.phase is Phase.DONE for job in jobs)
        now = time.monotonic()
        if done == rush.runs or now - began > rush.patience_s:
            return jobs
        # Before all are taken in, a list and its queue are of different moments.
        if len(jobs) == rush.runs and (not watch.queues or now - listed_at > _LIST_EVERY_S):
            print(f"{now - began:.0f} s: {done} of {len(jobs)} at rest", file=sys.stderr, flush=True)
            watch.queues.append(_listed_queue(cloud))
            listed_at = now
        watch.machines = max(watch.machines, len(cloud.compute_server.leftovers().instances))
        time.sleep(pause_s)


def _left_over(cloud: LocalCloud) -> int:
    """Count what the runs left; a machine that the API no longer shows gets a moment to end its processes."""
    deadline = time.monotonic() + _PROCESS_END_S
    while (left := sum(cloud.leftovers().values())) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    return left


def _listed_queue(cloud: LocalCloud) -> dict[str, int]:
    """Return the places in the queue that `runtender list` shows, by run."""
    command = [str(Path(sys.executable).with_name("runtender")), "list", "--limit", "1000"]
    environment = {**clean_environment(os.environ), **cloud.environment}
    shown = subprocess.run(
        command, env=environment, cwd=cloud.folder, stdout=subprocess.PIPE, text=True, check=True
    )
    header, *lines = (line.split() for line in shown.stdout.splitlines())
    if header[-1] != "QUEUE":
        return {}
    return {line[0]: int(line[-1]) for line in lines if line[-1].isdigit()}


def _figures(
    rush: Rush, jobs: Sequence[Job], watch: Watch, times: Times, left: int, inserts: int
) -> list[dict[str, Any]]:
    outcomes = Counter(f"{job.outcome} ({job.reason})" for job in jobs)
    succeeded = sum(job.outcome is Outcome.SUCCEEDED and job.phase is Phase.DONE for job in jobs)
    creates = _creates_by_minute(rush, jobs)
    longest = max((len(queue) for queue in watch.queues), default=0)
    ends = ", ".join(f"{count} {words}" for words, count in outcomes.items())
    minutes = f"{inserts} inserts in {len(creates)} minutes of the plane"
    looks = f"{len(watch.queues)} looks, the longest queue {longest}"
    each = f"{times.took_s / rush.runs:.2f} s each, time scale {rush.time_scale:g}"
    rows = (
        ("runs that did not succeed", rush.runs - succeeded, "", 0, ends),
        ("creates in the busiest minute", max(creates.values()), "", rush.budget, minutes),
        ("most jobs alive at once", _most_alive(jobs), "", rush.alive, f"machines seen: {watch.machines}"),
        ("overtaken in the queue", _overtaken(jobs), "", 0, "one accepted later was let in before"),
        ("out of place in `runtender list`", _misplaced(jobs, watch.queues), "", 0, looks),
        ("left over", left, "", 0, "machines, disks, operations, processes"),
        ("published in", round(times.published_s, 1), "s", None, f"{rush.runs} submits"),
        ("all at rest after", round(times.took_s, 1), "s", None, each),
    )
    return [
        {"figure": figure, "value": value, "unit": unit, "aim": aim, "detail": detail}
        for figure, value, unit, aim, detail in rows
    ]


def _creates_by_minute(rush: Rush, jobs: Sequence[Job]) -> Counter[int]:
    """Count the machines that were begun, by the plane's own minutes."""
    minute_s = 60 / rush.time_scale
    begun = (row.since for job in jobs for row in job.resources)
    return Counter(int(at.timestamp() / minute_s) for at in begun)


def _most_alive(jobs: Sequence[Job]) -> int:
    """Return the most jobs between being let in and being at rest at one moment."""
    begun = [(job.admitted_at, 1) for job in jobs if job.admitted_at]
    moments = sorted([*begun, *((job.history[-1].at, -1) for job in jobs if job.admitted_at)])
    alive = most = 0
    for _, change in moments:
        alive += change
        most = max(most, alive)
    return most


def _overtaken(jobs: Sequence[Job]) -> int:
    """Count the jobs that stood in the queue while one that was accepted after them was let in."""
    in_order = sorted((job for job in jobs if job.admitted_at), key=lambda job: job.accepted_at)
    count = 0
    for index, job in enumerate(in_order):
        stood_from = job.accepted_at + _TAKEN_IN
        count += any(
            later.admitted_at and job.admitted_at and stood_from < later.admitted_at < job.admitted_at
            for later in in_order[index + 1 :]
        )
    return count


def _misplaced(jobs: Sequence[Job], queues: Sequence[Mapping[str, int]]) -> int:
    """Count the places of all listed queues that are not those of the order in which the runs were accepted."""
    accepted = {job.run_id: job.accepted_at for job in jobs}
    count = 0
    for queue in queues:
        in_order = sorted(queue, key=lambda run_id: accepted[run_id])
        count += sum(queue[run_id] != place for place, run_id in enumerate(in_order, start=1))
    return count


if __name__ == "__main__":
    main()

"""Whether a functions process grows with the events it handles.

Run by `run.py`; prints its figures as JSON. One process serves all three entry points, and run after run goes through it:
submit, started, terminal, and a tick for what is left to remove. Its resident memory is read on the way. Runs at rest are
taken out of the store, as the database's TTL policy does: the embedded store holds pages of its file, and sometimes a whole
collection, in the process that asks, which Firestore does not. All threads share one pool of memory: how large pools of their
own become is chance. Events count from when the first runs have come to rest: until then, code is met first.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.figures import figure
from tests.bench.guest import write_end, write_started
from tests.bench.served import services
from tests.bench.stack import WHOLE_FUNCTIONS, Stack, marker_message, submit_messages

from runtender.model import Job, Outcome, Phase
from runtender.ports import Objects, Remove
from runtender.wire.documents import job_from_document

EARLY, LATE = 200, 2000
WARM_UPS = 10
_AIM = 1.05
_RUNS_AT_ONCE = 10
_EVENTS_PER_RUN = 4
_EVENTS_AT_ONCE = _RUNS_AT_ONCE * _EVENTS_PER_RUN
# So that a machine that is to go is looked for after seconds, not a minute.
TIME_SCALE = 20
# To glibc; elsewhere it says nothing.
_ONE_POOL = {"MALLOC_ARENA_MAX": "1"}
_MOST_JOBS = 1000
_MOST_WARM_UPS = 100


def measure(early: int, late: int, warm_ups: int, time_scale: int) -> tuple[float, float, int]:
    """Return the process's resident memory in MiB after `early` and `late` events, and how many runs came to rest.

    Before the first that counts, runs go through it, once more than `warm_ups` times and on until one has come to rest.
    """
    memory: dict[int, float] = {}
    at_rest = 0
    with (
        services() as url,
        tempfile.TemporaryDirectory() as name,
        Stack(WHOLE_FUNCTIONS, Path(name, "plane"), url, SF_TIME_SCALE=str(time_scale), **_ONE_POOL) as stack,
    ):
        _warm_up(stack, warm_ups)
        for events in range(_EVENTS_AT_ONCE, late + 1, _EVENTS_AT_ONCE):
            _live(stack, f"m{events}")
            at_rest += _take_out(stack)
            memory[events] = resident_mib(stack.functions.pid)
        if stack.functions.starts != 1:
            raise SystemExit("the functions process did not live through all events")
    return memory[early], memory[late], at_rest


def _warm_up(stack: Stack, least: int) -> None:
    at_rest = 0
    for turn in range(_MOST_WARM_UPS):
        _live(stack, f"w{turn}")
        at_rest += _take_out(stack)
        if at_rest and turn >= least:
            return
    raise SystemExit("no run has come to rest")


def _live(stack: Stack, name: str) -> None:
    """Let some runs work and end, and as many ticks come."""
    stack.deliver(stack.settings.submit_topic, submit_messages(name, _RUNS_AT_ONCE))
    jobs = [job for job in stack.jobs() if job.outcome is None]
    _write_all(stack, jobs, write_started)
    _write_all(stack, jobs, write_end)
    stack.deliver(stack.settings.tick_topic, [(b"{}", {})] * _RUNS_AT_ONCE)


def _write_all(stack: Stack, jobs: list[Job], write: Callable[[Objects, Job], str]) -> None:
    stack.deliver(stack.settings.marker_topic, [marker_message(write(stack.objects, job)) for job in jobs])


def _take_out(stack: Stack) -> int:
    """Remove the runs at rest, with all that there is of them; return how many there were."""
    found = [(job_from_document(one.data), one) for one in stack.store.find("jobs", limit=_MOST_JOBS)]
    at_rest = {job.run_id: one for job, one in found if job.phase is Phase.DONE}
    for job, _ in found:
        if job.run_id in at_rest and job.outcome is not Outcome.SUCCEEDED:
            raise SystemExit(f"a run has not come to its happy end: {job}")
    others = [
        one
        for collection in ("runs", "requests")
        for one in stack.store.find(collection, limit=_MOST_JOBS)
        if one.data["run_id"] in at_rest
    ]
    for one in [*at_rest.values(), *others]:
        stack.store.commit([Remove(path=one.path, stamp=one.stamp)])
    return len(at_rest)


def resident_mib(pid: int | None) -> float:
    """Return a process's resident memory in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kib,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return int(kib) / 1024


def figures(early: int, late: int, warm_ups: int, time_scale: int) -> list[dict[str, Any]]:
    """Return the later memory as a multiple of the earlier."""
    before, after, at_rest = measure(early, late, warm_ups, time_scale)
    detail = f"{after:.0f} MiB against {before:.0f} MiB; {at_rest} runs had come to rest"
    name = f"memory of the functions after {late:,} events against after {early}"
    return [figure(name, round(after / before, 2), unit="x", aim=_AIM, detail=detail)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--early", type=int, default=EARLY, help="a multiple of 40")
    parser.add_argument("--late", type=int, default=LATE, help="a multiple of 40")
    parser.add_argument(
        "--warm-ups", type=int, default=WARM_UPS, help="times 40 events that do not count, at least"
    )
    parser.add_argument("--time-scale", type=int, default=TIME_SCALE, help="how much faster than real time")
    options = parser.parse_args()
    print(json.dumps(figures(options.early, options.late, options.warm_ups, options.time_scale)))

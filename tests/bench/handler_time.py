"""How long each handler takes, against the same commits, reads and calls carried out bare on the same backends.

Run by `run.py`; prints its figures as JSON. The backends are the local cloud's: a store in a file, and simulated services
behind sockets in a process of their own. Both sides take turns. Waiting for an operation is no work: the clock is told the
time, so a pause takes none. What remains above the floor is the plane's own work: planning, deciding, reading and writing
documents, logging.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections import Counter, defaultdict
from contextlib import redirect_stdout
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.bench.figures import figure
from tests.bench.life import EVENTS, Life
from tests.bench.served import ToldSession, services
from tests.bench.tape import Part, Replay, check, record
from tests.bench.world import ToldClock

from runtender import logs

_AIM = 1.5
_WARM_UP = 3

Times = defaultdict[str, list[float]]


def measure(rounds: int) -> tuple[list[Part], Times, Times]:
    """Live a life and carry out its calls bare, in turn; return its parts, and the seconds of each by event."""
    ours: Times = defaultdict(list)
    floor: Times = defaultdict(list)
    with services() as url, tempfile.TemporaryDirectory() as name, ToldSession(ToldClock()) as session:
        folder = Path(name)
        parts = record(url, folder, 0, session)
        for turn in range(rounds + _WARM_UP):
            if turn == _WARM_UP:
                ours.clear()
                floor.clear()
            _live(Life(url, folder, 2 * turn + 1, session), ours)
            _replay(parts, Replay(folder, 2 * turn + 2, session), floor)
    return parts, ours, floor


def _live(life: Life, times: Times) -> None:
    for name, handle in life.events():
        began = perf_counter()
        handle()
        times[name].append(perf_counter() - began)
    life.close()


def _replay(parts: list[Part], replay: Replay, times: Times) -> None:
    for part in parts:
        carry_out = replay.prepared(part)
        began = perf_counter()
        answers = carry_out()
        times[part.name].append(perf_counter() - began)
        check(part, answers)
    replay.close()


def figures(rounds: int) -> list[dict[str, Any]]:
    """Return each handler's median as a multiple of its floor's."""
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        logs.set_up()
        parts, ours, floor = measure(rounds)
    return [
        _figure(part, statistics.median(ours[part.name]), statistics.median(floor[part.name]))
        for part in parts
        if part.name in EVENTS
    ]


def _figure(part: Part, took: float, floor: float) -> dict[str, Any]:
    ports = Counter(call.port for call in part.calls)
    commits = sum(call.name == "commit" for call in part.calls)
    reads, calls = ports["store"] - commits, ports["wire"]
    detail = (
        f"{took * 1000:.1f} ms against {floor * 1000:.1f} ms: commits {commits}, reads {reads}, calls {calls}"
    )
    name = f"handler of {part.name} against its calls alone"
    return figure(name, round(took / floor, 2), unit="x", aim=_AIM, detail=detail)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="lives, and floors of lives")
    print(json.dumps(figures(parser.parse_args().rounds)))

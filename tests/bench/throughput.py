"""How many submits a second the plane takes in, against a bare commit per message, and how many runs a second it settles.

Run by `run.py`; prints its figures as JSON. All of it is on the local cloud's embedded backend: messages are published at
once and pushed by the dispatcher to one functions process, beside the services in another. Everything shares the cores of
this machine. Each rate is the median of some rounds, which take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.figures import figure
from tests.bench.guest import write_end, write_started
from tests.bench.served import services
from tests.bench.stack import (
    PARTIAL_FUNCTIONS,
    WHOLE_FUNCTIONS,
    Stack,
    marker_message,
    submit_messages,
)

from runtender.model import Outcome

_FEW = 10
# As a rate, half of the bare one.
_AIM = 2.0

Rates = Mapping[str, list[float]]


def measure(rounds: int, messages: int) -> Rates:
    """Return the rates per second, by what was done."""
    rates: Rates = defaultdict(list)
    with services() as url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            Stack(PARTIAL_FUNCTIONS, folder / "partial", url) as partial,
            Stack(WHOLE_FUNCTIONS, folder / "whole", url) as whole,
        ):
            _one_round(partial, whole, "warm-up", _FEW)
            for turn in range(rounds):
                for what, rate in _one_round(partial, whole, f"turn-{turn}", messages).items():
                    rates[what].append(rate)
            _check(partial, whole, _FEW + rounds * messages)
    return rates


def _one_round(partial: Stack, whole: Stack, name: str, messages: int) -> dict[str, float]:
    submits = submit_messages(name, messages)
    bare = partial.seconds(partial.settings.marker_topic, submits)
    accepted = partial.seconds(partial.settings.submit_topic, submits)
    submitted = whole.seconds(whole.settings.submit_topic, submits)
    # The worker's part is done in between, off the clock.
    jobs = [job for job in whole.jobs() if job.outcome is None]
    marked = 0.0
    for write in (write_started, write_end):
        markers = [marker_message(write(whole.objects, job)) for job in jobs]
        marked += whole.seconds(whole.settings.marker_topic, markers)
    return {
        "bare": messages / bare,
        "accepted": messages / accepted,
        "submitted": messages / submitted,
        "settled": messages / (submitted + marked),
    }


def _check(partial: Stack, whole: Stack, messages: int) -> None:
    """Raise unless every message did what was counted."""
    made = len(partial.jobs())
    if made != 2 * messages:
        raise SystemExit(f"{made} jobs came of the messages, not {2 * messages}")
    outcomes = Counter(job.outcome for job in whole.jobs())
    if outcomes != {Outcome.SUCCEEDED: messages}:
        raise SystemExit(f"not all runs succeeded: {outcomes}")


def figures(rounds: int, messages: int) -> list[dict[str, Any]]:
    """Return the rates."""
    rate = {what: statistics.median(rates) for what, rates in measure(rounds, messages).items()}
    intake = f"{rate['accepted']:.0f} messages a second against {rate['bare']:.0f}, from publish to commit"
    return [
        figure(
            "taking a submit in against its bare commit",
            round(rate["bare"] / rate["accepted"], 2),
            unit="x",
            aim=_AIM,
            detail=intake,
        ),
        figure("submits a second", round(rate["submitted"]), detail="each until its machine is asked for"),
        figure(
            "runs settled a second",
            round(rate["settled"]),
            detail="submit, started and terminal event of each",
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=100, help="of each sort in each round")
    options = parser.parse_args()
    print(json.dumps(figures(options.rounds, options.messages)))

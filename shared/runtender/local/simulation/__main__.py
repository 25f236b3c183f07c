"""Plays many worlds and says what they came to, or tells one of them: `python -m runtender.local.simulation --help`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from runtender.local.simulation.cluster_plots import ALL_PLOTS
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.plots import BrokenPlot, crashes, second_crashes
from runtender.local.simulation.worlds import BrokenWorld, Kind, Survey, play, survey

_SHARE = 100
_SHOWN = 10
_FIRSTS_PER_WORD = 50


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what was asked for; 1 when a rule was broken."""
    asked = _parser().parse_args(arguments)
    # The plane tells of every trouble that is made here on purpose.
    logging.disable(logging.CRITICAL)
    if asked.seed is not None:
        return _tell(asked.seed, asked.kind or Kind.MACHINES)
    began = time.monotonic()
    found = _survey_all(asked.first, asked.seeds, [asked.kind] if asked.kind else list(Kind))
    pairs, torn = _play_pairs() if asked.pairs else (0, [])
    broken = [*found.broken.values(), *torn]
    _report(found, pairs, broken, asked.first, time.monotonic() - began)
    return 1 if broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m runtender.local.simulation")
    parser.add_argument(
        "--seeds", type=int, default=2000, help="worlds of each kind to draw and play, on all cores"
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--pairs", action="store_true", help="play every pair of crashes in each of the plots besides"
    )
    parser.add_argument("--kind", type=Kind, choices=list(Kind), help="play worlds of this kind only")
    parser.add_argument("--seed", type=int, help="play this one world, and tell all that happens in it")
    return parser


def _tell(seed: int, kind: Kind) -> int:
    try:
        world = play(seed, kind)
    except BrokenWorld as broken:
        _say(str(broken))
        return 1
    _say(world.story(last=len(world.cloud.log)))
    for job in world.jobs:
        _say(f"{job.job_key}: {job.outcome} {job.reason} {job.detail}")
    return 0


def _survey_all(first: int, count: int, kinds: Sequence[Kind]) -> Survey:
    end = first + count
    starts = range(first, end, _SHARE)
    shares = [(range(start, min(start + _SHARE, end)), kind) for start in starts for kind in kinds]
    found = Survey()
    with _pool() as pool:
        for part in pool.map(survey, *zip(*shares, strict=True)):
            found.join(part)
    return found


def _play_pairs() -> tuple[int, list[str]]:
    """Play every pair of crashes in each plot; return how many there were, and the stories of broken rules."""
    firsts = [(number, first) for number, plot in enumerate(ALL_PLOTS) for first in crashes(plot.points())]
    count, broken = 0, []
    with _pool() as pool:
        for done, (pairs, stories) in enumerate(pool.map(_tear, firsts), start=1):
            count += pairs
            broken += stories
            if done % _FIRSTS_PER_WORD == 0:
                sys.stderr.write(
                    f"{done} of {len(firsts)} first crashes, {count} pairs, broken rules {len(broken)}\n"
                )
    return count, broken


def _tear(crash: tuple[int, Mapping[int, Fate]]) -> tuple[int, list[str]]:
    """Play a crash of a plot with each second one; return how many these are, and the stories of broken rules."""
    number, first = crash
    count, broken = 0, []
    try:
        for fates in second_crashes(ALL_PLOTS[number], first):
            count += 1
            broken += _broken_by(number, fates)
    except BrokenPlot as error:
        broken.append(str(error))
    return count, broken


def _broken_by(number: int, fates: Mapping[int, Fate]) -> list[str]:
    try:
        ALL_PLOTS[number].play(fates)
    except BrokenPlot as error:
        return [str(error)]
    return []


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        max_workers=os.cpu_count(), initializer=logging.disable, initargs=(logging.CRITICAL,)
    )


def _report(found: Survey, pairs: int, broken: Sequence[str], first: int, seconds: float) -> None:
    seeds = f" (from seed {first} on)" if found.worlds else ""
    _say(f"worlds         {found.worlds}{seeds}")
    _say(f"crash pairs    {pairs}")
    _say(f"handler runs   {found.steps}")
    _say(f"external calls {found.calls}")
    _say(f"rule checks    {found.checks}")
    _say(f"broken rules   {len(broken)}")
    _say(f"seconds        {seconds:.0f}")
    for end, count in found.ends.most_common():
        _say(f"  {count:7}  {end}")
    for story in broken[:_SHOWN]:
        _say(f"\n{story}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())

"""Worlds drawn by chance: one seed is one story of a kind, of machines or of a cluster, with its users and its weather.

`play(seed, kind)` tells one and raises `BrokenWorld`, which names both, at the first broken rule. `survey` plays many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from runtender.local.simulation.cluster_stories import ClusterStory
from runtender.local.simulation.machine_stories import MachineStory
from runtender.local.simulation.rules import BrokenRule
from runtender.local.simulation.world import World


class Kind(StrEnum):
    """What worlds are about. Those with a cluster have machines as well."""

    MACHINES = "machines"
    CLUSTERS = "clusters"


class Story(Protocol):
    """One seed's story: all chance in it is drawn from the seed alone."""

    world: World

    def tell(self) -> None:
        """Submit, let the storm rage for a while, then let it end and see the world come to rest."""


_STORIES: Mapping[Kind, Callable[[int], Story]] = {Kind.MACHINES: MachineStory, Kind.CLUSTERS: ClusterStory}


class BrokenWorld(AssertionError):
    """A world in which a rule was broken."""


@dataclass(kw_only=True, slots=True)
class Survey:
    """What many worlds came to. `ends` counts outcomes with their reasons."""

    worlds: int = 0
    steps: int = 0
    calls: int = 0
    checks: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    broken: dict[tuple[Kind, int], str] = field(default_factory=dict)

    def add(self, world: World) -> None:
        """Count a world that came to rest."""
        self.worlds += 1
        self.steps += len(world.invocations)
        self.calls += sum(len(invocation.calls) for invocation in world.invocations)
        self.checks += world.cloud.onlooker.checks
        self.ends.update(f"{job.outcome} {job.reason}" for job in world.jobs)

    def join(self, other: Survey) -> None:
        """Add what another survey found."""
        self.worlds += other.worlds
        self.steps += other.steps
        self.calls += other.calls
        self.checks += other.checks
        self.ends.update(other.ends)
        self.broken.update(other.broken)


def survey(seeds: Iterable[int], kind: Kind = Kind.MACHINES) -> Survey:
    """Play many worlds; broken ones are kept by kind and seed, and the others go on."""
    found = Survey()
    for seed in seeds:
        try:
            found.add(play(seed, kind))
        except BrokenWorld as broken:
            found.worlds += 1
            found.broken[kind, seed] = str(broken)
    return found


def play(seed: int, kind: Kind = Kind.MACHINES) -> World:
    """Play one world to its end; raises `BrokenWorld` with the seed and the last things that happened."""
    story = _STORIES[kind](seed)
    try:
        story.tell()
    except BrokenRule as broken:
        raise BrokenWorld(f"{kind}, seed {seed}: {broken}\n{story.world.story()}") from broken
    finally:
        story.world.close()
    return story.world

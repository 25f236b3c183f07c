"""Worlds drawn by chance: one seed is one story of submits, cancels, machines that misbehave, and weather.

`play(seed)` tells one and raises `BrokenWorld`, which names the seed, at the first broken rule. `survey` plays many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any

from runtender.local.compute.events import Booted
from runtender.local.compute.instances import Status
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.stock import Stock
from runtender.local.scenario import Shape, Stockout
from runtender.local.simulation.cloud import START
from runtender.local.simulation.guests import Behaviour, Death
from runtender.local.simulation.rules import BrokenRule
from runtender.local.simulation.storms import Storm
from runtender.local.simulation.weather import BROKEN_OFF, INSERT
from runtender.local.simulation.world import CONFIG, ENVIRONMENT, World
from runtender.settings import Settings

_ZONES = tuple(f"us-central1-{letter}" for letter in "abcf")
_TASK: Mapping[str, Any] = {"name": "chore", "image": "us-docker.pkg.dev/p/r/task:1", "command": ["true"]}
_TWO_FAMILIES: Mapping[str, Any] = {**CONFIG, "models": ["theta", "lightgbm"]}
_QUIRKS = ("guests", "stock", "blows", "users", "zones", "outages")
_SPANS_S: Mapping[str, Sequence[int]] = {
    "resend_within": (60, 600),
    "create_grace": (60, 180),
    "stall_grace": (240, 2700),
    "orphan_grace": (120, 600),
    "watch_interval": (120, 600),
    "provision_wait": (0, 25),
    "busy_wait": (5, 30),
}


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
    broken: dict[int, str] = field(default_factory=dict)

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


def survey(seeds: Iterable[int]) -> Survey:
    """Play many worlds; broken ones are kept by seed, and the others go on."""
    found = Survey()
    for seed in seeds:
        try:
            found.add(play(seed))
        except BrokenWorld as broken:
            found.worlds += 1
            found.broken[seed] = str(broken)
    return found


def play(seed: int) -> World:
    """Play one world to its end; raises `BrokenWorld` with the seed and the last things that happened."""
    story = _Story(seed)
    try:
        story.tell()
    except BrokenRule as broken:
        raise BrokenWorld(f"seed {seed}: {broken}\n{story.world.story()}") from broken
    finally:
        story.world.close()
    return story.world


class _Story:
    """One seed's story. All chance is drawn here, from the seed alone."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(f"story {seed}")
        self.scarcity = Random(f"scarcity {seed}")
        self.quirks = {quirk for quirk in _QUIRKS if self.chance.random() < 0.4}
        self.world = World(
            seed=seed,
            settings=self._settings(),
            weather=Storm(Random(f"weather {seed}")),
            behaviour=self._behaviour,
            stock=self._stock(),
            quotas=self._quotas(),
        )

    def tell(self) -> None:
        """Submit, let the storm rage for a while, then let it end."""
        world, chance = self.world, self.chance
        world.submit(**self._message())
        for _ in range(chance.randint(2, 12)):
            self._act()
            world.run(timedelta(seconds=chance.choice((1, 10, 60, 120, 300, 600))))
        world.settle()

    def _message(self) -> dict[str, Any]:
        kind = self.chance.random()
        if kind < 0.25:
            return {"kind": "task", "config": _TASK}
        return {"config": _TWO_FAMILIES if kind < 0.45 else CONFIG}

    def _act(self) -> None:
        acts: list[Callable[[], object]] = [
            *([self._resubmit, self._cancel, self._retry] if "users" in self.quirks else []),
            *([self._strike, self._strike] if "blows" in self.quirks else []),
            *([self._silence, self._place_stranger] if "zones" in self.quirks else []),
            *([self._outage, self._late_create] if "outages" in self.quirks else []),
            lambda: None,
        ]
        self.chance.choice(acts)()

    def _resubmit(self) -> None:
        again = self.chance.choice(({}, {"force": True}, {"every": "10m"}))
        self.world.submit(**self._message(), **again)

    def _cancel(self) -> None:
        self.world.cancel(self._some_run())

    def _retry(self) -> None:
        self.world.publish({"action": "retry", "run_id": self._some_run()})

    def _some_run(self) -> str:
        runs = sorted(self.world.cloud.onlooker.runs)
        return self.chance.choice(runs) if runs else "nobody-0123456789ab"

    def _outage(self) -> None:
        """Let nothing be delivered for a while."""
        self.world.cloud.pass_time(timedelta(minutes=self.chance.choice((2, 10, 50))))

    def _late_create(self) -> None:
        late = timedelta(seconds=self.chance.choice((30, 100, 300, 900)))
        self.world.weather.plan(INSERT, BROKEN_OFF, late=late)

    def _strike(self) -> None:
        """Hit a machine that runs."""
        cloud, now = self.world.cloud, self.world.now
        running = [machine for machine in cloud.machines() if machine.status is Status.RUNNING]
        if not running:
            return
        machine = self.chance.choice(running)
        zone, name = machine.order.zone, machine.order.name
        blows: tuple[Callable[[], object], ...] = (
            lambda: cloud.zones.core.preempt(zone, name, now),
            lambda: cloud.zones.core.host_error(zone, name, now),
            lambda: cloud.zones.reboot(machine),
            lambda: cloud.zones.core.keep_disk(machine),
        )
        by_hand = (
            () if machine.id in cloud.zones.strangers else (lambda: cloud.zones.delete_by_hand(machine),)
        )
        self.chance.choice((*blows, *by_hand))()

    def _silence(self) -> None:
        self.world.cloud.zones.core.silence(self.chance.sample(_ZONES, self.chance.randint(0, 2)))

    def _place_stranger(self) -> None:
        if self.world.jobs:
            name = self.chance.choice(self.world.jobs).plan.name
            self.world.cloud.zones.place_stranger(self.chance.choice(_ZONES), name)

    def _behaviour(self, _booted: Booted) -> Behaviour:
        if "guests" not in self.quirks:
            return Behaviour()
        chance = self.chance
        return Behaviour(
            boot_s=chance.choice((1, 20, 120, 700)),
            work_s=chance.choice((5, 240, 240, 900, 3000)),
            exit_code=chance.choice((0, 0, 0, 3)),
            cells_failed=chance.choice((0, 0, 1, 4)),
            summary=chance.random() < 0.8,
            pulls=chance.random() < 0.9,
            boots=chance.random() < 0.95,
            dies=chance.choice((None, None, None, *Death)),
            mute_when_stopped=chance.random() < 0.4,
        )

    def _settings(self) -> Settings:
        """Draw the spans that matter, so that what is rare at the usual ones comes about too."""
        chance = self.chance
        environment = dict(ENVIRONMENT)
        if chance.random() < 0.3:
            environment["SF_GUEST_SELF_DELETE"] = "false"
        if self.scarcity.random() < 0.25:
            environment["SF_LIMITS"] = '[{"jobs": 1}]'
        # A counter for each job's creates, or one for all.
        environment["SF_API_BUDGET"] = self.scarcity.choice(("1", "10", "1000", "1000"))
        settings = Settings.from_env(environment)
        if chance.random() < 0.5:
            return settings
        spans = {name: timedelta(seconds=chance.choice(choices)) for name, choices in _SPANS_S.items()}
        return replace(settings, timing=replace(settings.timing, **spans))

    def _quotas(self) -> Quotas | None:
        if "stock" not in self.quirks or self.chance.random() < 0.5:
            return None
        # Enough for one machine, or for none.
        return Quotas(by_region={"us-central1": {"N2_CPUS": self.chance.choice((0, 8))}})

    def _stock(self) -> Stock | None:
        if "stock" not in self.quirks:
            return None
        outs = [
            Stockout(
                zone=self.chance.choice((*_ZONES, None)),
                first=self.chance.choice((1, 2, None)),
                until=timedelta(minutes=self.chance.choice((2, 5, 10, 40))),
                shape=self.chance.choice(list(Shape)),
            )
            for _ in range(self.chance.randint(1, 3))
        ]
        return Stock(outs, opened_at=START)

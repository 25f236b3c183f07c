"""Stories of machines, drawn by chance: submits, cancels, machines that misbehave, and weather."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any

from runtender.local.compute.events import Booted
from runtender.local.compute.instances import Status
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.stock import Stock
from runtender.local.scenario import Shape, Stockout
from runtender.local.simulation.cloud import START
from runtender.local.simulation.draws import a_behaviour, an_environment, some_idle_ticks, some_spans
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.storms import Storm
from runtender.local.simulation.users import Users
from runtender.local.simulation.weather import BROKEN_OFF, INSERT
from runtender.local.simulation.world import CONFIG, ENVIRONMENT, World
from runtender.settings import Settings

_ZONES = tuple(f"us-central1-{letter}" for letter in "abcf")
_TASK: Mapping[str, Any] = {"name": "chore", "image": "us-docker.pkg.dev/p/r/task:1", "command": ["true"]}
_TWO_FAMILIES: Mapping[str, Any] = {**CONFIG, "models": ["theta", "lightgbm"]}
_QUIRKS = ("guests", "stock", "blows", "users", "zones", "outages")


class MachineStory:
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
        self._users = Users(self.world, self.chance, self._message)

    def tell(self) -> None:
        """Submit, let the storm rage for a while, then let it end."""
        world, chance = self.world, self.chance
        world.submit(**self._message())
        for _ in range(chance.randint(2, 12)):
            self._act()
            span = timedelta(seconds=chance.choice((1, 10, 60, 120, 300, 600)))
            world.run(span, idle_ticks=some_idle_ticks(chance))
        world.settle()

    def _message(self) -> dict[str, Any]:
        kind = self.chance.random()
        if kind < 0.25:
            return {"kind": "task", "config": _TASK}
        return {"config": _TWO_FAMILIES if kind < 0.45 else CONFIG}

    def _act(self) -> None:
        users = self._users
        acts: list[Callable[[], object]] = [
            *([users.resubmit, users.cancel, users.retry] if "users" in self.quirks else []),
            *([self._strike, self._strike] if "blows" in self.quirks else []),
            *([self._silence, self._place_stranger] if "zones" in self.quirks else []),
            *([self._outage, self._late_create] if "outages" in self.quirks else []),
            lambda: None,
        ]
        self.chance.choice(acts)()

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
        return a_behaviour(self.chance)

    def _settings(self) -> Settings:
        return some_spans(
            Settings.from_env(an_environment(self.chance, self.scarcity, ENVIRONMENT)), self.chance
        )

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

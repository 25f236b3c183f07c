"""A whole cloud in one process, with the plane in it, under a clock that somebody else holds.

    world = World(seed=7)
    world.submit()
    world.run(timedelta(minutes=10))
    world.settle()

The plane is the real one: handlers, engine, adapters and documents. The simulated services are those of the local cloud,
called without a socket; only machines and pods are played (`guests`, `pods`). The world delivers events, lets time
pass, makes trouble (`weather`) and has every step watched (`rules`). The same seed gives the same world.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

from runtender.engine import Engine
from runtender.engine.handlers import Handlers
from runtender.errors import RuntenderError
from runtender.local.compute.events import Booted
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.stock import Stock
from runtender.local.simulation.cloud import START, WAREHOUSE, Cloud
from runtender.local.simulation.clusters import NAME, ClusterSetup
from runtender.local.simulation.guests import ORDINARY, Behaviour
from runtender.local.simulation.invocations import Crossing, Fate, Fiber, Invocation, Killed
from runtender.local.simulation.weather import Weather
from runtender.local.simulation.wiring import Clusters, wired
from runtender.local.topics import Delivery, push_body
from runtender.model import Job, Phase
from runtender.ports import Store
from runtender.settings import Settings
from runtender.wire.events import Event

TICK = timedelta(seconds=60)
ENVIRONMENT: Mapping[str, str] = {
    "SF_PROJECT_ID": "p",
    "SF_CODE_BUCKET": "code",
    "SF_WAREHOUSE_URI": f"gs://{WAREHOUSE}/warehouse",
    "SF_COMPUTE_SA": "worker@p.iam.gserviceaccount.com",
    "SF_SUBNETWORK_URI": "projects/p/regions/us-central1/subnetworks/s",
    "SF_CONTAINER_IMAGE": "us-docker.pkg.dev/p/r/worker:1",
    "SF_PACKAGE_URI": "gs://code/worker.zip",
    "SF_BOOT_LIMIT_S": "600",
}
CLUSTER_ENVIRONMENT: Mapping[str, str] = {**ENVIRONMENT, "SF_GKE_CLUSTER": NAME}
PANEL = "panel.csv"
CONFIG: Mapping[str, Any] = {
    "run_name": "flights",
    "python_runtime": "gce",
    "data": {"source_table": f"gs://{WAREHOUSE}/{PANEL}"},
    "models": ["theta"],
}
CLUSTER_CONFIG: Mapping[str, Any] = {
    **CONFIG,
    "python_runtime": "gke",
    "compute": {"workers": 4},
}
"""The same forecast by four pods."""
LIMITS: Mapping[str, str] = {"run": "20m", "capacity_wait": "15m"}
# Enough for a run to use up all its limits, one after the other, and for an orphan to be seen twice.
_TICKS_TO_REST = 150


class PushedEvent:
    """An event as the framework would hand it over: Pub/Sub's push body, and no attributes of its own."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)


class World:
    """One plane in one cloud. Times are spans from the start; nothing is random but what `seed` draws.

    `at_death` hears of each handler that is killed, before anything else happens.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        settings: Settings | None = None,
        weather: Weather | None = None,
        behaviour: Callable[[Booted], Behaviour] | Behaviour = ORDINARY,
        store: Store | None = None,
        stock: Stock | None = None,
        quotas: Quotas | None = None,
        cluster: ClusterSetup | None = None,
    ) -> None:
        self.chance = Random(seed)
        self.settings = settings or Settings.from_env(CLUSTER_ENVIRONMENT if cluster else ENVIRONMENT)
        self.weather = weather or Weather()
        self.cloud = Cloud(
            self.settings,
            self.weather,
            self.chance,
            behaviour if callable(behaviour) else lambda _booted: behaviour,
            store=store,
            stock=stock,
            quotas=quotas,
            cluster=cluster,
        )
        self.at_death: Callable[[World], None] = lambda _world: None
        self.invocation: Invocation | None = None
        self.invocations: list[Invocation] = []
        self._frozen: dict[Fiber, Invocation] = {}
        self._next_tick = START + TICK
        self._idle = 0
        self._clusters = Clusters(self.cloud)
        self.plane = wired(self.cloud, self._clusters, self._cross)
        handlers = Handlers(self.plane, Engine(self.plane, spread=map))
        self._handlers: Mapping[str, Callable[[Event], None]] = {
            self.settings.submit_topic: handlers.on_submit,
            self.settings.marker_topic: handlers.on_marker,
            self.settings.tick_topic: handlers.on_tick,
        }
        self.cloud.write_object(WAREHOUSE, PANEL, b"ts_id,ds,y\n")

    # --- what users do

    def submit(self, config: Mapping[str, Any] = CONFIG, **message: Any) -> None:
        """Publish a submit message."""
        self.publish({"config": config, "limits": LIMITS, **message})

    def cancel(self, run_id: str, **message: Any) -> None:
        """Publish a cancel message."""
        self.publish({"action": "cancel", "run_id": run_id, **message})

    def publish(self, message: Mapping[str, Any]) -> None:
        """Publish any message on the submit topic."""
        self.cloud.note(f"user: {message.get('action', 'submit')}")
        self.cloud.topics.publish(
            self.settings.submit_topic, json.dumps(message).encode(), {}, self.cloud.clock.time
        )

    def restart(self) -> None:
        """Let the plane's process be another one, which remembers nothing."""
        self._clusters.restart()

    # --- what can be seen

    @property
    def now(self) -> datetime:
        """The true time."""
        return self.cloud.clock.time

    @property
    def jobs(self) -> list[Job]:
        """All jobs as last saved, in the order they came."""
        return list(self.cloud.onlooker.jobs.values())

    @property
    def job(self) -> Job:
        """The only job."""
        (job,) = self.jobs
        return job

    def due(self) -> list[Delivery]:
        """Return the events that could be delivered now, longest due first."""
        found = self.cloud.topics.due(self.now)
        return [delivery for delivery in found if delivery.subscription.endpoint is not None]

    # --- what happens

    def tick(self) -> None:
        """Publish a tick."""
        self.cloud.topics.publish(self.settings.tick_topic, b"tick", {}, self.now)

    def deliver(self, delivery: Delivery, fate: Fate | None = None) -> Invocation:
        """Hand an event to its handler, and let become of that invocation what fate says."""
        topic = delivery.subscription.topic
        begun = self.cloud.topics.begin(delivery, self.now)
        fate = fate or self.weather.fate(topic)
        invocation = Invocation(
            topic, fate, lambda span: self._freeze(fiber, invocation, span), lambda: self.now
        )
        self.invocations.append(invocation)
        self.cloud.note(f"{topic} {begun.message.id[-9:]}, delivery {begun.attempt} {fate}")
        fiber = Fiber(lambda: self._handle(begun))
        go = fiber.resume if fate.freezes else (lambda: self._handle(begun))
        self._let(invocation, go)
        return invocation

    def run(self, span: timedelta, *, idle_ticks: int | None = None) -> None:
        """Let time pass with all that belongs to it: ticks, and every event as soon as it is due.

        Of the ticks that find the world at rest, one after the other, only so many come as `idle_ticks` says.
        """
        end = self.now + span
        while self.now < end:
            if self.now >= self._next_tick:
                self._next_tick += TICK
                if idle_ticks is None or self._idle_ticks() <= idle_ticks:
                    self.tick()
            if due := self.due():
                self.deliver(self.weather.pick(due))
                continue
            change = self.cloud.topics.next_change() or end
            self.cloud.pass_time(min(self._next_tick, end, change) - self.now, until_due=True)

    def _idle_ticks(self) -> int:
        """Count one more tick, if the world is at rest as it was at those before."""
        self._idle = self._idle + 1 if self.is_at_rest() else 0
        return self._idle

    def settle(self) -> None:
        """End all trouble and see the world come to rest, in time and in order; raises `BrokenRule` otherwise."""
        self.cloud.calm()
        for _ in range(_TICKS_TO_REST):
            if self.is_at_rest():
                break
            self.run(TICK)
        self.cloud.onlooker.check_rest(self.cloud.leftovers())
        self.cloud.check_strangers()

    def is_at_rest(self) -> bool:
        """True when nothing is left to happen but idle ticks."""
        jobs_done = all(job.phase is Phase.DONE for job in self.jobs)
        waiting = self._frozen or self.cloud.pending or self.cloud.topics.next_change() is not None
        return jobs_done and not waiting and not any(self.cloud.leftovers().values())

    def close(self) -> None:
        """Kill what is still frozen."""
        while self._frozen:
            fiber, invocation = self._frozen.popitem()
            invocation.die()
            fiber.abandon()

    def story(self, last: int = 60) -> str:
        """Return the newest lines of what happened."""
        lines = ((at - START, what) for at, what in self.cloud.log[-last:])
        return "\n".join(f"{span.total_seconds():9.1f}  {what}" for span, what in lines)

    def _cross(self, crossing: Crossing, call: Callable[[], Any]) -> Any:
        self.cloud.note(f"  {crossing.name}")
        return call() if self.invocation is None else self.invocation.cross(crossing, call)

    def _let(self, invocation: Invocation, go: Callable[[], None]) -> None:
        """Let an invocation run on, with its own clock and memory, until it ends or is frozen."""
        before = self.invocation
        self._switch_to(invocation)
        try:
            go()
        finally:
            self._switch_to(before)

    def _switch_to(self, invocation: Invocation | None) -> None:
        self.invocation = invocation
        self.cloud.partial_fleets = set() if invocation is None else invocation.partial_fleets
        self.cloud.clock.skew = timedelta() if invocation is None else invocation.fate.skew

    def _handle(self, begun: Delivery) -> None:
        handler = self._handlers[begun.subscription.topic]
        try:
            handler(PushedEvent(push_body(begun, self.settings.project)))
        except (RuntenderError, Killed) as error:
            if isinstance(error, Killed):
                self.at_death(self)
                self.restart()
            self.cloud.note(f"  failed: {type(error).__name__}: {error}")
            self.cloud.topics.nack(begun.ack_id, self.now)
        else:
            self.cloud.topics.ack(begun.ack_id)

    def _freeze(self, fiber: Fiber, invocation: Invocation, span: timedelta) -> None:
        def thaw(_at: datetime) -> None:
            if self._frozen.pop(fiber, None):
                self.cloud.note(f"{invocation.kind}: goes on after {span}")
                self._let(invocation, fiber.resume)

        self.cloud.note(f"  frozen for {span}")
        self._frozen[fiber] = invocation
        self.cloud.agenda.at(self.now + span, thaw)
        fiber.park()

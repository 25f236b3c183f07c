"""Stories of a standing cluster, drawn by chance: jobs of several pods, blows to pods, nodes and Jobs, and weather."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any

from runtender.local.kubernetes.documents import Document, name_of, namespace_of
from runtender.local.kubernetes.events import PodStarted
from runtender.local.kubernetes.pods import node_of
from runtender.local.simulation.clusters import POOL, ClusterSetup, StandingCluster
from runtender.local.simulation.draws import a_pod_behaviour, an_environment, some_idle_ticks, some_spans
from runtender.local.simulation.pods import ORDINARY_POD, PodBehaviour
from runtender.local.simulation.storms import ClusterStorm, Storm
from runtender.local.simulation.users import Users
from runtender.local.simulation.weather import BROKEN_OFF, CREATE_JOB
from runtender.local.simulation.world import CLUSTER_CONFIG, CLUSTER_ENVIRONMENT, CONFIG, World
from runtender.model import Phase
from runtender.settings import Settings

_TASK: Mapping[str, Any] = {
    "name": "chore",
    "image": "us-docker.pkg.dev/p/r/task:1",
    "command": ["true"],
    "runtime": "gke",
}
_TWO_FAMILIES = ["theta", "lightgbm"]
_QUIRKS = ("pods", "blows", "users", "people", "room", "outages", "endpoints", "retries")
_PROPAGATIONS = ("Background", "Background", "Foreground", "Orphan")
_OTHERS_LABELS: tuple[Mapping[str, str], ...] = ({}, {"sf-plane": "other", "sf-kind": "job"})
# Above this, events of workers are looked at in turns.
_MANY = 40
_HOW_OFTEN_MANY = 0.02


class ClusterStory:
    """One seed's story. All chance is drawn here, from the seed alone."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(f"cluster story {seed}")
        self.quirks = {quirk for quirk in _QUIRKS if self.chance.random() < 0.4}
        self.workers = self._drawn_workers()
        weather = Storm(Random(f"weather {seed}"), ClusterStorm(Random(f"cluster weather {seed}")))
        self.world = World(seed=seed, settings=self._settings(seed), weather=weather, cluster=self._setup())
        self._users = Users(self.world, self.chance, self._message)

    def tell(self) -> None:
        """Submit, let the storm rage for a while, then let it end."""
        world, chance = self.world, self.chance
        world.submit(**self._message())
        for _ in range(chance.randint(2, 8 if self.workers == _MANY else 12)):
            self._act()
            span = timedelta(seconds=chance.choice((1, 10, 60, 120, 300, 600)))
            world.run(span, idle_ticks=some_idle_ticks(chance))
        world.settle()

    def _drawn_workers(self) -> int:
        return _MANY if self.chance.random() < _HOW_OFTEN_MANY else self.chance.choice((1, 2, 3, 3, 4))

    def _setup(self) -> ClusterSetup:
        nodes, most = self.workers, None
        if "room" in self.quirks:
            # Too few nodes, which may grow or not.
            nodes = self.chance.randint(0, self.workers)
            most = self.chance.choice((None, self.workers))
        minor = self.chance.choice((34, 34, 34, 33, 31, 29))
        return ClusterSetup(nodes=nodes, most=most, minor=minor, pods=self._pods)

    def _pods(self, order: PodStarted) -> PodBehaviour:
        ours = "sf-key" in order.labels
        return a_pod_behaviour(self.chance) if ours and "pods" in self.quirks else ORDINARY_POD

    def _settings(self, seed: int) -> Settings:
        environment = an_environment(self.chance, Random(f"scarcity {seed}"), CLUSTER_ENVIRONMENT)
        if "retries" in self.quirks:
            environment["SF_GKE_INDEX_RETRIES"] = self.chance.choice(("0", "1", "2"))
            if (most := self.chance.choice((None, "0", "1"))) is not None:
                environment["SF_GKE_MAX_FAILED_INDEXES"] = most
        return some_spans(Settings.from_env(environment), self.chance)

    def _message(self) -> dict[str, Any]:
        kind, config = self.chance.random(), {**CLUSTER_CONFIG, "compute": {"workers": self.workers}}
        if kind < 0.2:
            return {"kind": "task", "config": {**_TASK, "workers": self.workers}}
        if kind < 0.35:
            return {"config": {**config, "models": _TWO_FAMILIES}}
        if kind < 0.5:
            ml = {"runtime": "gke", "workers": self.workers}
            return {"config": {**CONFIG, "models": _TWO_FAMILIES, "compute": {"families": {"ml": ml}}}}
        return {"config": config}

    # --- acts

    def _act(self) -> None:
        users = self._users
        acts: list[Callable[[], object]] = [
            *([users.resubmit, users.cancel, users.retry] if "users" in self.quirks else []),
            *([self._strike_pod, self._strike_node] if "blows" in self.quirks else []),
            *([self._delete_job, self._place_job] if "people" in self.quirks else []),
            *([self._make_room, self._lose_image, self._limit_pods] if "room" in self.quirks else []),
            *([self._outage, self._late_create] if "outages" in self.quirks else []),
            *([self._go_down, self._move] if "endpoints" in self.quirks else []),
            lambda: None,
        ]
        self.chance.choice(acts)()

    @property
    def _cluster(self) -> StandingCluster:
        return self.world.cloud.cluster

    def _strike_pod(self) -> None:
        pod = self._some(self._cluster.running_pods())
        if pod is None:
            return
        core, where, now = self._cluster.core, (namespace_of(pod), name_of(pod)), self.world.now
        blows: tuple[Callable[[], object], ...] = (
            lambda: core.evict(*where, now),
            lambda: core.preempt(*where, now),
            lambda: self._cluster.people.delete_pod(pod),
        )
        self.chance.choice(blows)()

    def _strike_node(self) -> None:
        pod = self._some(self._cluster.running_pods())
        if pod is None:
            return
        core = self._cluster.core
        self.chance.choice((core.take_node, core.lose_node))(node_of(pod), self.world.now)
        # Whoever lost a node gets another one, or waits for room.
        if self.chance.random() < 0.8:
            core.add_node(POOL, self.world.now)

    def _delete_job(self) -> None:
        found = self._some(self._cluster.jobs())
        if found is None:
            return
        propagation = self.chance.choice(_PROPAGATIONS)
        job = next(one for one in self.world.jobs if one.plan.name == name_of(found))
        # Pods that are set free when their job is done are nobody's any more: their own deadline ends them.
        if propagation != "Orphan" or job.phase is not Phase.DONE:
            self._cluster.people.delete_job(found, propagation)

    def _place_job(self) -> None:
        if self.world.jobs:
            name = self.chance.choice(self.world.jobs).plan.name
            self._cluster.people.place_job(name, self.chance.choice(_OTHERS_LABELS))

    def _make_room(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self._cluster.core.add_node(POOL, self.world.now)

    def _lose_image(self) -> None:
        core, image = self._cluster.core, self.world.settings.container_image
        self.chance.choice((core.miss_image, core.find_image))(image)

    def _limit_pods(self) -> None:
        people = self._cluster.people
        if self.chance.random() < 0.5:
            people.limit_pods(self.chance.choice((0, 1, 2)))
        else:
            people.lift_limit()

    def _outage(self) -> None:
        """Let nothing be delivered for a while."""
        self.world.cloud.pass_time(timedelta(minutes=self.chance.choice((2, 10, 50))))

    def _late_create(self) -> None:
        late = timedelta(seconds=self.chance.choice((30, 100, 300, 900)))
        self.world.weather.plan(CREATE_JOB, BROKEN_OFF, late=late)

    def _go_down(self) -> None:
        self._cluster.go_down(timedelta(minutes=self.chance.choice((1, 5, 20))))

    def _move(self) -> None:
        self._cluster.move(page=self.chance.random() < 0.5)

    def _some(self, documents: list[Document]) -> Document | None:
        return self.chance.choice(documents) if documents else None

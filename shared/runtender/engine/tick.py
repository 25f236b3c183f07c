"""The watchdog: what events did not tell is found here, each minute (design 7)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from runtender.engine.clusters import GKE, known_clusters
from runtender.engine.fleet import Fleet, at_work, read_fleets, suspects, sweep
from runtender.engine.plane import Plane
from runtender.engine.step import Engine
from runtender.observed import Present
from runtender.ports import Runtime

_DUE_AT_ONCE = 100
_FEW = 8
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class Watchdog:
    """Steps every job that is due, then those whose worker the fleet list shows ended, then sweeps orphans."""

    def __init__(self, plane: Plane, engine: Engine) -> None:
        self._plane = plane
        self._engine = engine
        self._clusters: tuple[str, ...] = ()
        self._ask_again = _LONG_AGO

    def tick(self) -> int:
        """Run one tick within its budget; return how many jobs were looked at."""
        looked: set[str] = set()
        runtimes = [self._plane.runtimes[name] for name in self._plane.runtimes if name != GKE]
        machines = [
            (runtime, fleet) for runtime in runtimes for fleet in read_fleets(self._plane, runtime, ())
        ]
        try:
            self._step_due(looked, {nonce: sight for _, fleet in machines for nonce, sight in at_work(fleet)})
            # Whoever left without saying so has made room all the same.
            self._engine.admit()
        finally:
            # A job that trips over a bug of ours must not keep the others from being found.
            for runtime, fleet in machines:
                self._search(runtime, fleet, looked)
            self._search_clusters(looked)
        return len(looked)

    def _search_clusters(self, looked: set[str]) -> None:
        """Look through the clusters, each tick from another one on: those that do not answer must not hide the rest."""
        clock, timing = self._plane.clock, self._plane.settings.timing
        end, clusters = clock.now() + timing.tick_budget, self._known_clusters(quiet=not looked)
        turn = int(clock.now().timestamp() / timing.tick.total_seconds())
        for at in range(len(clusters)):
            if clock.now() >= end:
                break
            runtime = self._plane.runtimes[GKE]
            for fleet in read_fleets(self._plane, runtime, [clusters[(turn + at) % len(clusters)]]):
                self._search(runtime, fleet, looked)

    def _known_clusters(self, *, quiet: bool) -> tuple[str, ...]:
        """Return the clusters that may have Jobs. They hardly ever change: a process asks now and then, in quiet ticks."""
        now, interval = self._plane.clock.now(), self._plane.settings.timing.watch_interval
        if now >= self._ask_again + (timedelta() if quiet else interval):
            self._clusters = known_clusters(self._plane)
            self._ask_again = now + interval / 2
        return self._clusters

    def _search(self, runtime: Runtime, fleet: Fleet, looked: set[str]) -> None:
        sweep(self._plane, runtime, fleet)
        accused = suspects(self._plane, fleet) - looked
        looked |= accused
        self._engine.step_all(sorted(accused), thorough=True)

    def _step_due(self, looked: set[str], sighted: Mapping[str, Present]) -> None:
        clock, timing = self._plane.clock, self._plane.settings.timing
        end = clock.now() + timing.tick_budget
        while clock.now() < end:
            due = self._plane.store.due(clock.now(), _DUE_AT_ONCE)
            fresh = [key for key in due if key not in looked]
            looked.update(fresh)
            # A few jobs may wait for their operations as long as the tick lasts, but not longer than a handler may. Many
            # may not: the last of them would not be looked at for minutes.
            few = len(fresh) <= _FEW
            patience = min(timing.provision_wait, end - clock.now()) if few else timedelta()
            self._engine.step_all(fresh, wait=patience, sighted=sighted)
            if not fresh or len(due) < _DUE_AT_ONCE:
                break

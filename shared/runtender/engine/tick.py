"""The watchdog: what events did not tell is found here, each minute (design 7)."""

from __future__ import annotations

from datetime import timedelta

from runtender.engine.clusters import GKE, known_clusters
from runtender.engine.fleet import read_fleets, suspects, sweep
from runtender.engine.plane import Plane
from runtender.engine.step import Engine

_DUE_AT_ONCE = 100
_FEW = 8


class Watchdog:
    """Steps every job that is due, then those whose worker the fleet list shows ended, then sweeps orphans."""

    def __init__(self, plane: Plane, engine: Engine) -> None:
        self._plane = plane
        self._engine = engine

    def tick(self) -> int:
        """Run one tick within its budget; return how many jobs were looked at."""
        looked: set[str] = set()
        try:
            self._step_due(looked)
            # Whoever left without saying so has made room all the same.
            self._engine.admit()
        finally:
            # A job that trips over a bug of ours must not keep the others from being found.
            self._read_fleets(looked)
        return len(looked)

    def _read_fleets(self, looked: set[str]) -> None:
        clusters = known_clusters(self._plane)
        for name in self._plane.runtimes:
            if name == GKE and not clusters:
                continue
            runtime = self._plane.runtimes[name]
            for fleet in read_fleets(self._plane, runtime, clusters):
                sweep(self._plane, runtime, fleet)
                accused = suspects(self._plane, fleet) - looked
                looked |= accused
                self._engine.step_all(sorted(accused), thorough=True)

    def _step_due(self, looked: set[str]) -> None:
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
            self._engine.step_all(fresh, wait=patience)
            if not fresh or len(due) < _DUE_AT_ONCE:
                break

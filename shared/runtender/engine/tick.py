"""The watchdog: what events did not tell is found here, each minute (design 7)."""

from __future__ import annotations

import logging
from dataclasses import replace

from runtender.engine.plane import Plane
from runtender.engine.step import Engine
from runtender.observed import LiveState
from runtender.ports import FleetPage, Runtime, Sighted

_LOG = logging.getLogger("runtender.tick")

_DUE_AT_ONCE = 100
_MOST_PAGES = 200


class Watchdog:
    """Steps every job that is due, then those whose worker the fleet list shows ended."""

    def __init__(self, plane: Plane, engine: Engine) -> None:
        self._plane = plane
        self._engine = engine

    def tick(self) -> int:
        """Run one tick within its budget; return how many jobs were looked at."""
        clock, timing = self._plane.clock, self._plane.settings.timing
        end = clock.now() + timing.tick_budget
        looked: set[str] = set()
        while clock.now() < end:
            due = [key for key in self._plane.store.due(clock.now(), _DUE_AT_ONCE) if key not in looked]
            if not due:
                break
            looked.update(due)
            wait = min(timing.provision_wait, max(end - clock.now(), timing.provision_wait / 5))
            self._engine.step_all(due, wait=wait)
        for runtime in self._plane.runtimes.values():
            suspects = self._suspects(runtime) - looked
            looked |= suspects
            self._engine.step_all(sorted(suspects), thorough=True)
        return len(looked)

    def _suspects(self, runtime: Runtime) -> set[str]:
        """Return the jobs whose worker is listed as going or gone. A partial list can still accuse, only not acquit."""
        found: set[str] = set()
        for worker in self._fleet(runtime):
            if worker.sight.state in {LiveState.ENDING, LiveState.ENDED} and worker.sight.key:
                rows = self._plane.store.find("jobs", where={"key": worker.sight.key}, limit=2)
                found.update(row.data["job_key"] for row in rows if row.data.get("wake_at") is not None)
        return found

    def _fleet(self, runtime: Runtime) -> list[Sighted]:
        api, settings = self._plane.apis[runtime.name], self._plane.settings
        request, workers = runtime.fleet(settings), list[Sighted]()
        for _ in range(_MOST_PAGES):
            page: FleetPage | None = runtime.fleet_page(api.send(request))
            if page is None:
                _LOG.warning("fleet list not read", extra={"runtime": runtime.name})
                break
            workers.extend(page.workers)
            if page.next_page is None:
                break
            request = replace(request, query={**request.query, "pageToken": page.next_page})
        return workers

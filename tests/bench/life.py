"""One run's life as the entry points see it, against served services and an embedded store: submit, started, look, terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.events import marker_event, push_event
from tests.bench.guest import write_cells, write_end, write_started
from tests.bench.served import ToldSession
from tests.bench.world import CONFIG, PANEL, SETTINGS, TICK, ToldClock

from runtender import logs
from runtender.engine import Plane
from runtender.engine.handlers import Handlers
from runtender.gcp.compute import RestApi
from runtender.gcp.serviceusage import GoogleQuota
from runtender.gcp.storage import StorageObjects
from runtender.local.publisher import EmbeddedTopics
from runtender.local.store import SqliteStore
from runtender.model import Job, Outcome, Phase
from runtender.runtimes.gce_vm import GceVm
from runtender.settings import Settings
from runtender.wire.documents import job_from_document, job_path, run_path
from runtender.wire.envelope import Delivery, read_delivery

EVENTS = ("submit", "started", "tick", "terminal")
"""The events whose handlers are measured. `tick` is one that looks at the running job."""

TEARDOWN = "teardown"
_HEADERS = {"Content-Type": "application/json"}
_BOOT = timedelta(seconds=60)
_MOST_TICKS = 20

Wrap = Callable[[str, Any], Any]


def bare(_name: str, port: Any) -> Any:
    """Leave a port as it is."""
    return port


class Life:
    """A run, and the plane that tends it, in the world `number` of its own. `wrap` may stand in front of store and wire."""

    def __init__(
        self, url: str, folder: Path, number: int, session: ToldSession, *, wrap: Wrap = bare
    ) -> None:
        self.clock = ToldClock()
        session.clock, session.number = self.clock, number
        self.store = fresh_store(folder, number)
        wire = wrap("wire", session)
        api = RestApi(wire, f"{url}/compute/v1", clock=self.clock)
        self._objects = StorageObjects(wire, url, clock=self.clock)
        settings = Settings.from_env(SETTINGS)
        self._watch_interval = settings.timing.watch_interval
        self._handlers = Handlers(
            Plane(
                settings=settings,
                store=wrap("store", self.store),
                objects=self._objects,
                topics=EmbeddedTopics(url, settings.project, wire),
                clock=self.clock,
                runtimes={"gce": GceVm()},
                apis={"gce": api},
                quota=GoogleQuota(settings.project, api, api, clock=self.clock),
            )
        )
        self._job_key = ""

    def events(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield the name of each event and what handles it, in order; between them the worker does its part."""
        self._objects.put(*PANEL)
        submit = push_event(json.dumps({"config": CONFIG}).encode(), self.clock.now())
        yield "submit", self._delivered(self._handlers.on_submit, submit)
        self._job_key = self._only_job()
        self.clock.moment += _BOOT
        yield "started", self._marker(write_started)
        write_cells(self._objects, self._job(), 0)
        self.clock.moment += self._watch_interval * 1.1
        yield "tick", self._tick()
        self.clock.moment += TICK
        yield "terminal", self._marker(write_end)
        for _ in range(_MOST_TICKS):
            self.clock.moment += TICK
            yield TEARDOWN, self._tick()
            job = self._job()
            if (job.phase, job.outcome) == (Phase.DONE, Outcome.SUCCEEDED):
                return
        raise SystemExit(f"the run has not come to its happy end: {self._job()}")

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def _marker(self, write: Callable[[StorageObjects, Job], str]) -> Callable[[], None]:
        name = write(self._objects, self._job())
        return self._delivered(self._handlers.on_marker, marker_event(name, self.clock.now()))

    def _tick(self) -> Callable[[], None]:
        return self._delivered(self._handlers.on_tick, push_event(b"", self.clock.now()))

    def _delivered(self, handle: Callable[[Delivery], None], body: bytes) -> Callable[[], None]:
        return partial(_serve, handle, body)

    def _only_job(self) -> str:
        (found,) = self.store.find("jobs")
        return str(found.data["job_key"])

    def _job(self) -> Job:
        snapshot = self.store.get(job_path(self._job_key))
        assert snapshot is not None
        return job_from_document(snapshot.data)


def fresh_store(folder: Path, number: int) -> SqliteStore:
    """Return an empty store that is open already."""
    store = SqliteStore(folder / f"{number}.sqlite")
    store.get(run_path("none"))
    return store


def _serve(handle: Callable[[Delivery], None], body: bytes) -> None:
    """Do what the deployed entry point does between the framework and the handler."""
    event = read_delivery(_HEADERS, body)
    with logs.about(event_id=event.event_id, trace_id=event.trace_id):
        handle(event)

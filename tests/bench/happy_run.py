"""What one undisturbed run costs the plane in calls: the first placement has capacity, the worker does its work and leaves.

Run by `run.py`; prints its figures as JSON. Everything happens in this process on a clock that is told the time, so the
counts are exact and the same everywhere. They are taken at the ports: what the guest itself calls is not in them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

import requests

from runtender.engine import Engine, Plane, Watchdog
from runtender.engine.intake import Intake
from runtender.gcp.compute import RestApi
from runtender.gcp.storage import StorageObjects
from runtender.ids import marker_object
from runtender.local.compute.core import ComputeCore
from runtender.local.compute.events import Booted, Event, Stopping
from runtender.local.http import CoreAdapter
from runtender.local.objects.core import ObjectsCore
from runtender.local.store import MemoryStore
from runtender.model import Job, Outcome, Phase
from runtender.runtimes.gce_vm import GceVm
from runtender.settings import Settings
from runtender.wire.documents import job_from_document, job_path
from runtender.worker.layout import summary_object

# Below the watch interval, so that the plane has no reason of its own to look at the running job.
RUN_LENGTH = timedelta(minutes=8)
_BOOT_TO_CONTAINER = timedelta(seconds=25)
_POWER_OFF = timedelta(seconds=2)
_SECOND = timedelta(seconds=1)
_TICK_S = 60
_LONGEST_S = 3600
_FIRST_BOOT = 1

_SETTINGS = {
    "SF_PROJECT_ID": "p",
    "SF_CODE_BUCKET": "code",
    "SF_WAREHOUSE_URI": "gs://wh/warehouse",
    "SF_COMPUTE_SA": "worker@p.iam.gserviceaccount.com",
    "SF_SUBNETWORK_URI": "projects/p/regions/us-central1/subnetworks/s",
    "SF_CONTAINER_IMAGE": "us-docker.pkg.dev/p/r/worker:1",
    "SF_PACKAGE_URI": "gs://code/worker.zip",
}
_SUBMIT = {
    "config": {
        "run_name": "flights",
        "python_runtime": "gce",
        "data": {"source_table": "gs://wh/panel.csv"},
        "models": ["theta", "autoets", "auto_ces"],
    }
}

_POLL = "compute.zoneOperations.get"
_READS = ("get", "due", "find")


class ToldClock:
    """Time passes only when somebody lets it."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)
        self._tokens = 0

    def now(self) -> datetime:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    def token(self) -> str:
        self._tokens += 1
        return f"t{self._tokens}"

    def jitter(self) -> float:
        return 0.5


class Counted:
    """A port that tells `note` of each call: its name, its first argument and its answer."""

    def __init__(self, port: Any, note: Callable[[str, Any, Any], None]) -> None:
        self._port = port
        self._note = note

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._port, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            answer = call(*arguments, **options)
            self._note(name, arguments[0], answer)
            return answer

        return counted


class Tally:
    """Counts the plane's calls by kind, `service.call`."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()

    def store(self, name: str, _path: Any, answer: Any) -> None:
        """Count as Firestore's bill does: each document read, and a query that finds nothing as one."""
        if name in _READS:
            self._calls["store.read"] += max(1, len(answer)) if isinstance(answer, list) else 1
        else:
            self._calls[f"store.{name}"] += 1

    def objects(self, name: str, _bucket: Any, _answer: Any) -> None:
        self._calls[f"storage.{name}"] += 1

    def topics(self, name: str, _topic: Any, _answer: Any) -> None:
        self._calls[f"pubsub.{name}"] += 1

    def api(self, _name: str, request: Any, _answer: Any) -> None:
        self._calls[request.method_id] += 1

    def take(self) -> Counter[str]:
        """Return what was counted since the last time."""
        taken, self._calls = self._calls, Counter()
        return taken


class World:
    """The plane, counted, on real parts in one process, and one guest."""

    def __init__(self) -> None:
        self.clock = ToldClock()
        self.tally = Tally()
        self.compute = ComputeCore(project="p")
        objects = ObjectsCore()
        for bucket in ("code", "wh"):
            objects.make_bucket(bucket, self.clock.now())
        session = requests.Session()
        session.mount("http://storage", CoreAdapter(objects.handle, self.clock.now))
        session.mount("http://compute", CoreAdapter(self.compute.handle, self.clock.now))
        self.documents = MemoryStore()
        self.objects = StorageObjects(session, "http://storage", clock=self.clock)
        self.api = RestApi(session, "http://compute/compute/v1", clock=self.clock)
        counted: dict[str, Any] = {
            "store": Counted(self.documents, self.tally.store),
            "objects": Counted(self.objects, self.tally.objects),
            "topics": Counted(_Unheard(), self.tally.topics),
            "apis": {"gce": Counted(self.api, self.tally.api)},
        }
        settings = Settings.from_env(_SETTINGS)
        self.plane = Plane(settings=settings, clock=self.clock, runtimes={"gce": GceVm()}, **counted)
        self.engine = Engine(self.plane)
        self.objects.put("wh", "panel.csv", b"ts_id,ds,y\n")

    def submit(self) -> str:
        """Deliver the submit message; return the key of its job."""
        receipt = Intake(self.plane).receive(
            json.dumps(_SUBMIT).encode(), message_id="m-1", published_at=self.clock.now()
        )
        wait = self.plane.settings.timing.provision_wait
        self.engine.step_all(receipt.job_keys, thorough=True, wait=wait)
        return receipt.job_keys[0]

    def tick(self) -> int:
        """Deliver a tick; return how many jobs it looked at."""
        return Watchdog(self.plane, self.engine).tick()

    def job(self, job_key: str) -> Job:
        """Return the job as saved last; nobody is charged for this look."""
        snapshot = self.documents.get(job_path(job_key))
        assert snapshot is not None
        return job_from_document(snapshot.data)


class _Unheard:
    """Topics that nobody listens to."""

    def publish(self, *_message: Any) -> str:
        return "1"


class Guest:
    """A machine that goes by the book: started marker, cells, summary, terminal marker, its own end."""

    def __init__(self, world: World, job_key: str) -> None:
        self._world = world
        self._job_key = job_key
        self._agenda: list[tuple[datetime, Callable[[], None]]] = []

    def hear(self, event: Event) -> None:
        """Take in what happened to the machine."""
        now = self._world.clock.now()
        match event:
            case Booted():
                started = now + _BOOT_TO_CONTAINER
                self._agenda += [(started, self._start), (started + RUN_LENGTH, self._end)]
            case Stopping():
                self._agenda.append((now + _POWER_OFF, partial(self._power_off, event.instance_id)))

    def act(self) -> None:
        """Do what is due."""
        due = [entry for entry in self._agenda if entry[0] <= self._world.clock.now()]
        for entry in due:
            self._agenda.remove(entry)
            entry[1]()

    def _power_off(self, instance_id: str) -> None:
        self._world.compute.guest_off(instance_id, _FIRST_BOOT, self._world.clock.now())

    def _start(self) -> None:
        self._mark("started", {"status": "RUNNING"})

    def _end(self) -> None:
        job = self._world.job(self._job_key)
        row = job.resources[-1]
        folder = f"{job.plan.cells_uri.removeprefix('gs://wh/')}/{row.nonce}"
        self._world.objects.put("wh", f"{folder}/cells/000000-000000.parquet", b"PAR1")
        summary = {"nonce": row.nonce, "n_cells": 315, "n_ok": 315, "n_error": 0, "complete": True}
        self._world.objects.put("wh", f"{folder}/{summary_object(0)}", json.dumps(summary).encode())
        self._mark("terminal", {"status": "SUCCEEDED", "exit_code": 0, "writer": "guest"})
        self._world.api.send(GceVm().delete(row, self._world.plane.settings))

    def _mark(self, stage: Literal["started", "terminal"], body: dict[str, Any]) -> None:
        nonce = self._world.job(self._job_key).resources[-1].nonce
        name = marker_object(self._job_key, nonce, 0, stage)
        self._world.objects.create("code", name, json.dumps(body).encode())
        self._world.engine.step(self._job_key)


def measure() -> tuple[Counter[str], Counter[str], int]:
    """Run from submit to rest; return the run's calls, those of its idle ticks, and how many of these there were."""
    world = World()
    job_key = world.submit()
    guest = Guest(world, job_key)
    of_run, of_idle_ticks, idle_ticks = Counter[str](), Counter[str](), 0
    for second in range(1, _LONGEST_S):
        world.clock.moment += _SECOND
        for event in world.compute.advance(world.clock.now()):
            guest.hear(event)
        guest.act()
        of_run += world.tally.take()
        if second % _TICK_S:
            continue
        if world.tick():
            of_run += world.tally.take()
        else:
            of_idle_ticks += world.tally.take()
            idle_ticks += 1
        job = world.job(job_key)
        if (job.phase, job.outcome) == (Phase.DONE, Outcome.SUCCEEDED):
            return of_run, of_idle_ticks, idle_ticks
    raise SystemExit(f"after {_LONGEST_S} s the run has not come to its happy end: {world.job(job_key)}")


def figures() -> list[dict[str, Any]]:
    """Return the bill of one run."""
    run, idle, ticks = measure()
    polls = run.pop(_POLL)
    compute, storage, publishes = (_of(service, run) for service in ("compute", "storage", "pubsub"))
    return [
        _figure("store commits per run", run["store.commit"], aim=10),
        _figure("document reads per run", run["store.read"], aim=12),
        _figure("Compute Engine calls per run", sum(compute.values()), aim=6, detail=_listed(compute)),
        _figure("polls of its operation", polls, detail="zoneOperations.get, while the insert is awaited"),
        _figure("Cloud Storage calls per run", sum(storage.values()), detail=_listed(storage)),
        _figure("messages published per run", sum(publishes.values())),
        _figure("calls per idle tick", sum(idle.values()) // ticks, detail=_listed(idle, ticks)),
    ]


def _figure(name: str, value: int, *, aim: int | None = None, detail: str = "") -> dict[str, Any]:
    return {"figure": name, "value": value, "unit": "", "aim": aim, "detail": detail}


def _of(service: str, calls: Mapping[str, int]) -> dict[str, int]:
    return {call: times for call, times in sorted(calls.items()) if call.startswith(f"{service}.")}


def _listed(calls: Mapping[str, int], per: int = 1) -> str:
    return ", ".join(f"{call.removeprefix('compute.')} {times // per}" for call, times in calls.items())


if __name__ == "__main__":
    print(json.dumps(figures()))

"""A plane on real parts in one process, on a clock that is told the time, with every call at its ports counted.

What is measured with it is the same on every machine. What the guest itself calls is not counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import requests
from tests.bench.guest import write_cells, write_end, write_started

from runtender.engine import Engine, Plane, Watchdog
from runtender.engine.intake import Intake, Receipt
from runtender.gcp.compute import RestApi
from runtender.gcp.serviceusage import GoogleQuota
from runtender.gcp.storage import StorageObjects
from runtender.local.compute.core import ComputeCore
from runtender.local.compute.events import Booted, Event, Stopping
from runtender.local.http import CoreAdapter
from runtender.local.objects.core import ObjectsCore
from runtender.local.store import MemoryStore
from runtender.model import Job
from runtender.ports import Document
from runtender.runtimes.gce_vm import GceVm
from runtender.settings import Settings
from runtender.wire.documents import job_from_document, job_path

SETTINGS = {
    "SF_PROJECT_ID": "p",
    "SF_CODE_BUCKET": "code",
    "SF_WAREHOUSE_URI": "gs://wh/warehouse",
    "SF_COMPUTE_SA": "worker@p.iam.gserviceaccount.com",
    "SF_SUBNETWORK_URI": "projects/p/regions/us-central1/subnetworks/s",
    "SF_CONTAINER_IMAGE": "us-docker.pkg.dev/p/r/worker:1",
    "SF_PACKAGE_URI": "gs://code/worker.zip",
}
BUCKETS = ("code", "wh")
PANEL = ("wh", "panel.csv", b"ts_id,ds,y\n")
CONFIG = {
    "run_name": "flights",
    "python_runtime": "gce",
    "data": {"source_table": "gs://wh/panel.csv"},
    "models": ["theta", "autoets", "auto_ces"],
}

TICK = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_BOOT_TO_CONTAINER = timedelta(seconds=25)
_POWER_OFF = timedelta(seconds=2)
_CELLS_EVERY = timedelta(minutes=5)
_FIRST_BOOT = 1
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

    def store(self, name: str, argument: Any, answer: Any) -> None:
        """Count as Firestore's bill does: each document read or written, and a query that finds nothing as one."""
        if name in _READS:
            self._calls["store.read"] += max(1, len(answer)) if isinstance(answer, list) else 1
        else:
            self._calls[f"store.{name}"] += 1
            self._calls["store.write"] += len(argument)

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
    """The plane, and the services around it."""

    def __init__(self) -> None:
        self.clock = ToldClock()
        self.tally = Tally()
        self.compute = ComputeCore(project="p")
        objects = ObjectsCore()
        for bucket in BUCKETS:
            objects.make_bucket(bucket, self.clock.now())
        session = requests.Session()
        session.mount("http://storage", CoreAdapter(objects.handle, self.clock.now))
        session.mount("http://compute", CoreAdapter(self.compute.handle, self.clock.now))
        self.documents = MemoryStore()
        self.objects = StorageObjects(session, "http://storage", clock=self.clock)
        self.api = RestApi(session, "http://compute/compute/v1", clock=self.clock)
        api = Counted(self.api, self.tally.api)
        counted: dict[str, Any] = {
            "store": Counted(self.documents, self.tally.store),
            "objects": Counted(self.objects, self.tally.objects),
            "topics": Counted(_Unheard(), self.tally.topics),
            "apis": {"gce": api},
            "quota": GoogleQuota("p", api, api, clock=self.clock),
        }
        settings = Settings.from_env(SETTINGS)
        self.plane = Plane(settings=settings, clock=self.clock, runtimes={"gce": GceVm()}, **counted)
        self.engine = Engine(self.plane)
        self._watchdog = Watchdog(self.plane, self.engine)
        self.objects.put(*PANEL)

    def receive(self) -> Receipt:
        """Take the submit message in, and do nothing more about it."""
        return Intake(self.plane).receive(
            json.dumps({"config": CONFIG}).encode(), message_id="m-1", published_at=self.clock.now()
        )

    def submit(self) -> str:
        """Deliver the submit message; return the key of its job."""
        receipt = self.receive()
        wait = self.plane.settings.timing.provision_wait
        self.engine.step_all(receipt.job_keys, thorough=True, wait=wait)
        return receipt.job_keys[0]

    def tick(self) -> int:
        """Deliver a tick; return how many jobs it looked at."""
        return self._watchdog.tick()

    def live_through_minute(self, guest: Guest) -> None:
        """Let a minute pass, and happen what has to."""
        for _ in range(TICK // _SECOND):
            self.clock.moment += _SECOND
            for event in self.compute.advance(self.clock.now()):
                guest.hear(event)
            guest.act()

    def job(self, job_key: str) -> Job:
        """Return the job as saved last; nobody is charged for this look."""
        snapshot = self.documents.get(job_path(job_key))
        assert snapshot is not None
        return job_from_document(snapshot.data)


def documents_of_a_submit() -> Mapping[str, Document]:
    """Return the documents that one accepted submit makes, by collection."""
    world = World()
    world.receive()
    found = {collection: world.documents.find(collection) for collection in ("requests", "runs", "jobs")}
    return {collection: snapshot.data for collection, (snapshot,) in found.items()}


class _Unheard:
    """Topics that nobody listens to."""

    def publish(self, *_message: Any) -> str:
        return "1"


class Guest:
    """A machine that goes by the book: started marker, cells, summary, terminal marker, its own end."""

    def __init__(self, world: World, job_key: str, length: timedelta) -> None:
        self._world = world
        self._job_key = job_key
        self._length = length
        self._agenda: list[tuple[datetime, Callable[[], None]]] = []

    def hear(self, event: Event) -> None:
        """Take in what happened to the machine."""
        now = self._world.clock.now()
        match event:
            case Booted():
                self._plan(now + _BOOT_TO_CONTAINER)
            case Stopping():
                self._agenda.append((now + _POWER_OFF, partial(self._power_off, event.instance_id)))

    def act(self) -> None:
        """Do what is due."""
        due = [entry for entry in self._agenda if entry[0] <= self._world.clock.now()]
        for entry in due:
            self._agenda.remove(entry)
            entry[1]()

    def _plan(self, started: datetime) -> None:
        self._agenda.append((started, self._start))
        for sequence in range(self._length // _CELLS_EVERY + 1):
            at = started + min((sequence + 1) * _CELLS_EVERY, self._length)
            self._agenda.append((at, partial(self._write_cells, sequence)))
        self._agenda.append((started + self._length, self._end))

    def _power_off(self, instance_id: str) -> None:
        self._world.compute.guest_off(instance_id, _FIRST_BOOT, self._world.clock.now())

    def _start(self) -> None:
        write_started(self._world.objects, self._world.job(self._job_key))
        self._world.engine.step(self._job_key)

    def _write_cells(self, sequence: int) -> None:
        write_cells(self._world.objects, self._world.job(self._job_key), sequence)

    def _end(self) -> None:
        job = self._world.job(self._job_key)
        row = job.resources[-1]
        write_end(self._world.objects, job)
        self._world.engine.step(self._job_key)
        self._world.api.send(GceVm().delete(job, row, self._world.plane.settings))

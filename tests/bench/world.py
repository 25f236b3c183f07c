"""A plane on real parts in one process, on a clock that is told the time, with every call at its ports counted.

What is measured with it is the same on every machine. What the guest itself calls is not counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from tests.bench.cluster import API_HOST, GKE_HOST, GKE_URL, NAME, Cluster

from runtender.engine import Engine, Plane, Watchdog
from runtender.engine.intake import Intake, Receipt
from runtender.gcp.compute import RestApi
from runtender.gcp.kubernetes import GkeApi
from runtender.gcp.serviceusage import GoogleQuota
from runtender.gcp.storage import StorageObjects
from runtender.ids import parse_marker_object
from runtender.local.compute.core import ComputeCore
from runtender.local.http import CoreHandler
from runtender.local.objects.core import ObjectsCore
from runtender.local.simulation.session import CoreSession
from runtender.local.store import MemoryStore
from runtender.model import Job, Outcome, Phase
from runtender.ports import Document, Runtime
from runtender.runtimes.gce_vm import GceVm
from runtender.runtimes.gke_job import GkeJob
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
    "SF_GKE_CLUSTER": NAME,
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

    def cluster(self, method: str) -> None:
        """Count a call where it arrives: a client's own look-ups count too."""
        self._calls[method] += 1

    def take(self) -> Counter[str]:
        """Return what was counted since the last time."""
        taken, self._calls = self._calls, Counter()
        return taken

    @contextmanager
    def apart(self) -> Iterator[Counter[str]]:
        """Count on a bill of its own what is called meanwhile."""
        before, self._calls = self._calls, Counter()
        try:
            yield self._calls
        finally:
            self._calls = before


class Guests(Protocol):
    """Who works on the machines, or in the pods, that the plane has made."""

    def live(self) -> None:
        """Hear what has happened since the last time, and do what is due."""


class World:
    """The plane, and the services around it; with `nodes` there is a standing cluster of so many."""

    def __init__(self, *, nodes: int = 0) -> None:
        self.clock = ToldClock()
        self.tally = Tally()
        self.compute = ComputeCore(project="p")
        self.cluster = Cluster(nodes, self.clock.now(), self.tally.cluster) if nodes else None
        objects = ObjectsCore()
        for bucket in BUCKETS:
            objects.make_bucket(bucket, self.clock.now())
        cores: dict[str, CoreHandler] = {"storage": objects.handle, "compute": self.compute.handle}
        if self.cluster is not None:
            cores |= {GKE_HOST: self.cluster.gke.handle, API_HOST: self.cluster.kubernetes.handle}
        session = CoreSession(cores, self.clock.now)
        self.documents = MemoryStore()
        self.objects = StorageObjects(session, "http://storage", clock=self.clock)
        self.api = RestApi(session, "http://compute/compute/v1", clock=self.clock)
        api = Counted(self.api, self.tally.api)
        runtimes: dict[str, Runtime] = {"gce": GceVm()}
        apis: dict[str, Any] = {"gce": api}
        if self.cluster is not None:
            runtimes["gke"] = GkeJob()
            apis["gke"] = GkeApi(GKE_URL, clock=self.clock, sessions=lambda _https: session)
        counted: dict[str, Any] = {
            "store": Counted(self.documents, self.tally.store),
            "objects": Counted(self.objects, self.tally.objects),
            "topics": Counted(_Unheard(), self.tally.topics),
            "quota": GoogleQuota("p", api, api, clock=self.clock),
        }
        settings = Settings.from_env(SETTINGS)
        self.plane = Plane(settings=settings, clock=self.clock, runtimes=runtimes, apis=apis, **counted)
        self.engine = Engine(self.plane)
        self._watchdog = Watchdog(self.plane, self.engine)
        self.objects.put(*PANEL)

    def receive(self, config: Mapping[str, Any] = CONFIG) -> Receipt:
        """Take the submit message in, and do nothing more about it."""
        return Intake(self.plane).receive(
            json.dumps({"config": config}).encode(), message_id="m-1", published_at=self.clock.now()
        )

    def submit(self, config: Mapping[str, Any] = CONFIG) -> str:
        """Deliver the submit message; return the key of its job."""
        receipt = self.receive(config)
        wait = self.plane.settings.timing.provision_wait
        self.engine.step_all(receipt.job_keys, thorough=True, wait=wait)
        return receipt.job_keys[0]

    def notify(self, marker: str) -> None:
        """Deliver the event of a marker."""
        where = parse_marker_object(marker)
        assert where is not None
        self.engine.notice(where)

    def tick(self) -> int:
        """Deliver a tick; return how many jobs it looked at."""
        return self._watchdog.tick()

    def live_through_minute(self, guests: Guests) -> None:
        """Let a minute pass, and happen what has to."""
        for _ in range(TICK // _SECOND):
            self.clock.moment += _SECOND
            guests.live()

    def job(self, job_key: str) -> Job:
        """Return the job as saved last; nobody is charged for this look."""
        snapshot = self.documents.get(job_path(job_key))
        assert snapshot is not None
        return job_from_document(snapshot.data)


def has_come_to_its_happy_end(job: Job) -> bool:
    """True when a job has succeeded and left nothing behind."""
    return (job.phase, job.outcome) == (Phase.DONE, Outcome.SUCCEEDED)


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

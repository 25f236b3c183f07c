"""A plane on real parts in one process: memory store, object server core, Compute Engine core, a clock that is told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from runtender.engine import Engine, Plane, Watchdog
from runtender.engine.intake import Intake
from runtender.gcp.compute import RestApi
from runtender.gcp.storage import StorageObjects
from runtender.ids import marker_object, request_document_id
from runtender.local.compute.core import ComputeCore
from runtender.local.compute.events import Stopping
from runtender.local.objects.core import ObjectsCore
from runtender.local.simulation.session import CoreSession
from runtender.local.store import MemoryStore
from runtender.runtimes.gce_vm import GceVm
from runtender.settings import Settings

CONFIG = {
    "run_name": "flights",
    "python_runtime": "gce",
    "data": {"source_table": "gs://wh/panel.csv"},
    "models": ["theta", "autoets"],
}
SETTINGS = {
    "SF_PROJECT_ID": "p",
    "SF_CODE_BUCKET": "code",
    "SF_WAREHOUSE_URI": "gs://wh/warehouse",
    "SF_COMPUTE_SA": "worker@p.iam.gserviceaccount.com",
    "SF_SUBNETWORK_URI": "projects/p/regions/us-central1/subnetworks/s",
    "SF_CONTAINER_IMAGE": "us-docker.pkg.dev/p/r/worker:1",
    "SF_PACKAGE_URI": "gs://code/worker.zip",
}


class ToldClock:
    """Time passes only when somebody waits."""

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
        return 0.0


@dataclass
class SentTopics:
    """Keeps what was published."""

    sent: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list)

    def publish(self, topic, body, attributes):
        self.sent.append((topic, body, dict(attributes)))
        return str(len(self.sent))


class World:
    """The plane and its surroundings.

    In the simulation's world events bring about all that happens; here a test calls intake, engine and watchdog by itself,
    and has the answer of each in hand.
    """

    config = CONFIG

    def __init__(self) -> None:
        self.clock = ToldClock()
        self.compute = ComputeCore(project="p")
        self.objects_core = ObjectsCore()
        for bucket in ("code", "wh"):
            self.objects_core.make_bucket(bucket, self.clock.now())
        cores = {"storage": self.objects_core.handle, "compute": self.compute.handle}
        session = CoreSession(cores, self.clock.now)
        self.store = MemoryStore()
        self.objects = StorageObjects(session, "http://storage", clock=self.clock)
        self.topics = SentTopics()
        self.plane = Plane(
            settings=Settings.from_env(SETTINGS),
            store=self.store,
            objects=self.objects,
            topics=self.topics,
            clock=self.clock,
            runtimes={"gce": GceVm()},
            apis={"gce": RestApi(session, "http://compute/compute/v1", clock=self.clock)},
        )
        self.engine = Engine(self.plane)
        self.objects.put("wh", "panel.csv", b"ts_id,ds,y\n")

    def send(self, message, message_id="m-1", published_at=None):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return Intake(self.plane).receive(
            body, message_id=message_id, published_at=published_at or self.clock.now()
        )

    def submit(self, message_id="m-1", **changes):
        return self.send({"config": CONFIG, **changes}, message_id)

    def start(self, receipt):
        self.engine.step_all(receipt.job_keys, thorough=True, wait=timedelta(seconds=25))

    def document(self, path):
        snapshot = self.store.get(path)
        assert snapshot is not None, path
        return snapshot.data

    def job(self, receipt):
        return self.document(f"jobs/{receipt.job_keys[0]}")

    def run(self, receipt):
        return self.document(f"runs/{receipt.run_id}")

    def request(self, request_id):
        return self.document(f"requests/{request_document_id(request_id)}")

    def mark(self, receipt, stage, **body):
        nonce = self.job(receipt)["resources"][-1]["nonce"]
        name = marker_object(receipt.job_keys[0], nonce, 0, stage)
        self.objects.create("code", name, json.dumps(body).encode())
        self.engine.step(receipt.job_keys[0])

    def finish(self, receipt, **body):
        self.mark(receipt, "started", status="RUNNING")
        self.mark(receipt, "terminal", **{"status": "SUCCEEDED", "exit_code": 0, **body})
        self.settle_down()

    def tick(self):
        self.clock.sleep(60)
        for event in self.compute.advance(self.clock.now()):
            if isinstance(event, Stopping):
                # Machines here go down at once, and none of them boots twice.
                self.compute.guest_off(event.instance_id, 1, self.clock.now())
        return Watchdog(self.plane, self.engine).tick()

    def settle_down(self, ticks=6):
        for _ in range(ticks):
            self.tick()


@pytest.fixture
def world():
    return World()


@pytest.fixture(scope="session")
def new_world():
    """Make worlds: for tests that need one per example."""
    return World

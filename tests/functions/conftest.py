"""The deployed entry points under functions-framework, and around them the simulated services on loopback ports.

An event is a whole HTTP request here, as Pub/Sub or Eventarc sends it; what it led to is read from the store, the buckets
and the machines, not from the code that ran.
"""

from __future__ import annotations

import base64
import json
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent import futures
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import functions_framework
import grpc  # type: ignore[import-untyped]
import pytest
from flask.testing import FlaskClient
from google.cloud.firestore_v1 import types as firestore
from google.pubsub_v1 import types as pubsub

from runtender import ids, wiring
from runtender.engine.intake import Intake
from runtender.local.compute.core import ComputeCore
from runtender.local.compute.timings import Timings
from runtender.local.environment import (
    CODE_BUCKET,
    FLIGHTS_OBJECT,
    PROJECT,
    WAREHOUSE_BUCKET,
    plane_settings,
)
from runtender.local.http import on_clock, serve
from runtender.local.objects.core import ObjectsCore
from runtender.local.objects.server import ObjectServer
from runtender.local.store import SqliteStore
from runtender.local.topics.core import TopicsCore
from runtender.local.topics.plane import plane_subscriptions, plane_topics
from runtender.local.topics.server import TopicsServer
from runtender.settings import Settings

MAIN = Path(__file__).parents[2] / "functions" / "main.py"
PUSHED = "google.cloud.pubsub.topic.v1.messagePublished"
FINALIZED = "google.cloud.storage.object.v1.finalized"
# Fast enough that no test waits, slow enough that a busy machine keeps the plane's own time limits.
_SCALE = 20.0

CONFIG = {
    "run_name": "flights",
    "python_runtime": "gce",
    "data": {"source_table": f"gs://{WAREHOUSE_BUCKET}/{FLIGHTS_OBJECT}"},
    "models": ["theta"],
}


def message(
    body: bytes | Mapping[str, Any], *, message_id: str = "m-1", at: datetime | None = None, **attributes: str
):
    """A Pub/Sub message as it lies in a push request."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return {
        "data": base64.b64encode(raw).decode(),
        "attributes": attributes,
        "messageId": message_id,
        "publishTime": (at or datetime.now(UTC)).isoformat(),
    }


def classic(message: Mapping[str, Any]) -> dict[str, Any]:
    """The request of a push subscription."""
    return {"json": {"message": message, "subscription": f"projects/{PROJECT}/subscriptions/s"}}


def binary(message: Mapping[str, Any]) -> dict[str, Any]:
    """The request of Eventarc: the same message as a CloudEvent whose attributes are headers."""
    return cloud_event(PUSHED, {"message": message}, id=str(message.get("messageId", "m-1")))


def cloud_event(type: str, data: Any, **more: str) -> dict[str, Any]:  # noqa: A002
    """Any binary CloudEvent."""
    headers = {
        "ce-specversion": "1.0",
        "ce-id": "e-1",
        "ce-source": "//pubsub.googleapis.com/",
        "ce-type": type,
    }
    return {"json": data, "headers": {**headers, **{f"ce-{name}": value for name, value in more.items()}}}


def notification(name: str, event_type: str = "OBJECT_FINALIZE"):
    """Cloud Storage's message about an object."""
    return message(
        {"kind": "storage#object", "name": name, "bucket": CODE_BUCKET},
        bucketId=CODE_BUCKET,
        objectId=name,
        objectGeneration="1",
        eventType=event_type,
    )


def storage_event(name: str) -> dict[str, Any]:
    """The same news as Eventarc's own Storage CloudEvent."""
    source = f"//storage.googleapis.com/projects/_/buckets/{CODE_BUCKET}"
    data = {"kind": "storage#object", "name": name, "bucket": CODE_BUCKET, "generation": "1"}
    return cloud_event(FINALIZED, data, source=source, subject=f"objects/{name}")


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """The simulated services, seen from outside the plane."""

    store: SqliteStore
    machines: ComputeCore
    buckets: ObjectServer
    topics: TopicsServer
    settings: Settings
    tmp: Path = field(repr=False)

    @property
    def dead_letters(self) -> list[bytes]:
        return [one.body for one in self.topics.waiting(f"{self.settings.dead_letter_topic}-pull")]

    @property
    def vms(self) -> tuple[str, ...]:
        return self.machines.leftovers().instances

    def documents(self) -> dict[str, list[Mapping[str, Any]]]:
        return {
            kind: [found.data for found in self.store.find(kind)] for kind in ("requests", "runs", "jobs")
        }

    def request(self, request_id: str) -> Mapping[str, Any]:
        row = self.store.get(f"requests/{ids.request_document_id(request_id)}")
        assert row is not None
        return row.data

    def job(self) -> Mapping[str, Any]:
        (job,) = self.store.find("jobs")
        return job.data

    def accept(self) -> str:
        """Take a run in as `on_submit` does, without looking at its job: that is left to whoever comes next."""
        body = json.dumps({"config": CONFIG}).encode()
        now = datetime.now(UTC)
        receipt = Intake(wiring.plane()).receive(body, message_id="m-0", published_at=now)
        return receipt.job_keys[0]

    def mark(self, stage: Literal["started", "terminal"], **body: Any) -> str:
        """Write a marker as the guest of the job's newest machine does; return the object's name."""
        job = self.job()
        name = ids.marker_object(job["job_key"], job["resources"][-1]["nonce"], 0, stage)
        wiring.objects(self.settings).create(CODE_BUCKET, name, json.dumps(body).encode())
        return name


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """The services, running, with the example panel in place, and the environment that leads the plane to them."""
    with ExitStack() as stack:
        machines = ComputeCore(project=PROJECT, timings=Timings().scaled(200))
        compute = stack.enter_context(serve(on_clock(machines.handle, lock=threading.Lock())))
        core = ObjectsCore()
        for bucket in (CODE_BUCKET, WAREHOUSE_BUCKET):
            core.make_bucket(bucket, datetime.now(UTC))
        buckets = stack.enter_context(ObjectServer(core))
        topics = stack.enter_context(TopicsServer(_topics()))
        environment = {
            **plane_settings(_SCALE),
            "SF_COMPUTE_ENDPOINT": f"{compute.url}/compute/v1",
            "SF_PACKAGE_URI": f"gs://{CODE_BUCKET}/worker.zip",
            "SF_STORE_PATH": str(tmp_path / "store.sqlite"),
            "SF_TOPICS_ENDPOINT": topics.url,
            "STORAGE_EMULATOR_HOST": buckets.url,
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        settings = wiring.settings()
        wiring.objects(settings).put(WAREHOUSE_BUCKET, FLIGHTS_OBJECT, b"ts_id,ds,y\n")
        store = SqliteStore(tmp_path / "store.sqlite")
        stack.callback(store.close)
        yield Cloud(
            store=store, machines=machines, buckets=buckets, topics=topics, settings=settings, tmp=tmp_path
        )


def _topics() -> TopicsCore:
    """The plane's topics, of which only those are subscribed to that nobody pushes: the tests deliver themselves."""
    settings = Settings(project=PROJECT, code_bucket="", status_bucket="", cells_prefix="")
    waiting = [one for one in plane_subscriptions(settings, "") if one.name.endswith("-pull")]
    return TopicsCore(project=PROJECT, topics=plane_topics(settings), subscriptions=waiting)


@pytest.fixture
def deliver(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Send an event to an entry point and return the status it is answered with; each test has its own processes."""
    # What the framework leaves behind in a process that it believes to be its own.
    for name in ("FUNCTION_TARGET", "FUNCTION_SIGNATURE_TYPE"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(sys, "path", list(sys.path))
    clients: dict[str, FlaskClient] = {}

    def send(target: str, request: Mapping[str, Any], verb: str = "POST") -> int:
        if target not in clients:
            app = functions_framework.create_app(target, MAIN)
            clients[target] = app.test_client()
        return clients[target].open("/", method=verb, **request).status_code

    yield send
    sys.modules.pop("main", None)
    # The log goes to what was standard output during this test.
    log = logging.getLogger("runtender")
    log.handlers.clear()
    log.propagate = True


@pytest.fixture
def events() -> Any:
    """The builders above, for test files: they cannot import one another."""

    class Builders:
        config = CONFIG
        message = staticmethod(message)
        classic = staticmethod(classic)
        binary = staticmethod(binary)
        cloud_event = staticmethod(cloud_event)
        notification = staticmethod(notification)
        storage_event = staticmethod(storage_event)

    return Builders


@dataclass(frozen=True, kw_only=True)
class GoogleServices:
    """Firestore, which knows of nothing and takes every write, and the publishing side of Pub/Sub, at one address."""

    address: str
    published: list[tuple[str, bytes]] = field(default_factory=list)


@pytest.fixture
def google_services() -> Iterator[GoogleServices]:
    """Serve both over gRPC; any other method is UNIMPLEMENTED."""
    published: list[tuple[str, bytes]] = []
    handlers = [_empty_firestore(), _publisher(published)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), handlers=handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield GoogleServices(address=f"127.0.0.1:{port}", published=published)
    server.stop(grace=None).wait()


def _publisher(published: list[tuple[str, bytes]]) -> Any:
    def publish(request: pubsub.PublishRequest, _context: Any):
        published.extend((request.topic, message.data) for message in request.messages)
        return pubsub.PublishResponse(message_ids=[str(len(published))])

    method = grpc.unary_unary_rpc_method_handler(
        publish, pubsub.PublishRequest.deserialize, pubsub.PublishResponse.serialize
    )
    return grpc.method_handlers_generic_handler("google.pubsub.v1.Publisher", {"Publish": method})


def _empty_firestore() -> Any:
    """Answers reads with nothing found and takes every write; any other method is UNIMPLEMENTED."""
    now = datetime.now(UTC)

    def find_nothing(request: firestore.BatchGetDocumentsRequest, _context: Any):
        for name in request.documents:
            yield firestore.BatchGetDocumentsResponse(missing=name, read_time=now)

    def match_nothing(_request: firestore.RunQueryRequest, _context: Any):
        yield firestore.RunQueryResponse(read_time=now)

    def take(request: firestore.CommitRequest, _context: Any):
        results = [firestore.WriteResult(update_time=now) for _ in request.writes]
        return firestore.CommitResponse(write_results=results, commit_time=now)

    methods = {
        "BatchGetDocuments": grpc.unary_stream_rpc_method_handler(
            find_nothing,
            firestore.BatchGetDocumentsRequest.deserialize,
            firestore.BatchGetDocumentsResponse.serialize,
        ),
        "RunQuery": grpc.unary_stream_rpc_method_handler(
            match_nothing, firestore.RunQueryRequest.deserialize, firestore.RunQueryResponse.serialize
        ),
        "Commit": grpc.unary_unary_rpc_method_handler(
            take, firestore.CommitRequest.deserialize, firestore.CommitResponse.serialize
        ),
    }
    return grpc.method_handlers_generic_handler("google.firestore.v1.Firestore", methods)

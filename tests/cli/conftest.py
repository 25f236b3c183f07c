"""A plane for the command line: the real store and object server in process, and a submit topic that answers.

The topic is the wire between a command and the functions. `Mailbox` stands at its far end and writes what the functions
would: the request's row and, for an accepted submit, the run's header and jobs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import referencing
import requests
import yaml
from click.testing import CliRunner, Result
from referencing.jsonschema import DRAFT202012

from runtender import ids
from runtender.cli.main import cli
from runtender.client.world import World
from runtender.engine.intake import Intake
from runtender.engine.plane import Plane
from runtender.gcp.clock import SystemClock
from runtender.gcp.compute import RestApi
from runtender.gcp.serviceusage import GoogleQuota
from runtender.gcp.storage import StorageObjects
from runtender.local.compute.core import ComputeCore
from runtender.local.home import CloudHome
from runtender.local.http import CoreAdapter
from runtender.local.objects.core import ObjectsCore
from runtender.local.store import MemoryStore
from runtender.local.subscriber import EmbeddedSubscriptions
from runtender.local.topics import TopicsApi, TopicsCore, plane_subscriptions, plane_topics
from runtender.model import (
    Cells,
    Cleanup,
    CleanupState,
    Deadlines,
    FamilyEntry,
    HistoryRow,
    Job,
    JobPlan,
    LedgerEntry,
    Limits,
    Outcome,
    Phase,
    PhaseTimes,
    Placement,
    Reason,
    Resource,
    ResourceKind,
    ResourceState,
    Run,
    SubmitKind,
    Summary,
    Verdict,
    Walk,
)
from runtender.ports import Create, Objects, Store
from runtender.settings import Settings
from runtender.wire.documents import job_path, job_to_document, request_path, run_path, run_to_document

RUN_ID = "flights-0123456789ab"
ACCEPTED = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
PROJECT = {"SF_PROJECT_ID": "demo", "SF_CODE_BUCKET": "demo-code"}
FLIGHTS = Path(__file__).parents[2] / "shared/runtender/local/examples"

_STATUS = {Outcome.SUCCEEDED: "COMPLETED", Outcome.PARTIAL: "PARTIAL", Outcome.CANCELLED: "CANCELLED"}


def a_plan(**changes: Any) -> JobPlan:
    defaults: dict[str, Any] = {
        "runtime": "gce",
        "name": "sf-flights-0123456789ab-statistical-a1",
        "models": ("theta", "autoets"),
        "machine_type": "n2-standard-8",
        "image_uri": "example/worker:1",
        "status_bucket": "demo-code",
        "placements": (Placement(region="us-central1", zone="us-central1-a"),),
        "capacity_wait": timedelta(minutes=45),
        "run_limit": timedelta(hours=1),
        "max_run_duration": timedelta(hours=2),
    }
    return JobPlan(**{**defaults, **changes})


def a_row(placement: int, state: ResourceState, key: str, location: str) -> Resource:
    return Resource(
        kind=ResourceKind.VM,
        name="sf-flights-0123456789ab-statistical-a1",
        location=location,
        placement=placement,
        try_number=0,
        nonce=ids.nonce(key, placement, 0),
        request_id=ids.request_uuid(key, 1, placement, 0),
        state=state,
        since=ACCEPTED + timedelta(minutes=placement),
    )


def a_job(**changes: Any) -> Job:
    """A job that found no capacity at its first placement and runs at its second."""
    family = changes.get("family", "statistical")
    attempt = changes.get("attempt", 1)
    key = ids.job_key(changes.get("run_id", RUN_ID), family, attempt)
    defaults: dict[str, Any] = {
        "job_key": key,
        "key": ids.key_digest(key),
        "run_id": RUN_ID,
        "family": family,
        "attempt": attempt,
        "runtime": "gce",
        "plan": a_plan(),
        "phase": Phase.RUNNING,
        "resources": (
            a_row(0, ResourceState.GONE, key, "us-central1-a"),
            a_row(1, ResourceState.CREATED, key, "us-central1-b"),
        ),
        "walk": Walk(
            attempts=1,
            ledger=(
                LedgerEntry(
                    candidate="us-central1/us-central1-a",
                    verdict=Verdict.TRANSIENT_CAPACITY,
                    code="ZONE_RESOURCE_POOL_EXHAUSTED",
                    message="The zone does not have \x1b[31menough\x1b[0m resources.\r\nTry another.",
                    elapsed_s=4.2,
                    at=ACCEPTED + timedelta(seconds=9),
                ),
            ),
        ),
        "deadlines": Deadlines(
            capacity=ACCEPTED + timedelta(minutes=45), run=ACCEPTED + timedelta(hours=1, minutes=3)
        ),
        "accepted_at": ACCEPTED,
        "started_at": ACCEPTED + timedelta(minutes=3),
        "wake_at": ACCEPTED + timedelta(minutes=10),
        "cells": Cells(count=4, last_at=ACCEPTED + timedelta(minutes=5)),
        "history": (
            HistoryRow(at=ACCEPTED, phase=Phase.PENDING, outcome=None, cause="submit", detail="accepted"),
            HistoryRow(
                at=ACCEPTED + timedelta(minutes=3), phase=Phase.RUNNING, outcome=None, cause="started marker"
            ),
        ),
    }
    return Job(**{**defaults, **changes})


def an_ended_job(outcome: Outcome, **changes: Any) -> Job:
    defaults: dict[str, Any] = {
        "phase": Phase.DONE,
        "outcome": outcome,
        "reason": Reason.COMPLETED,
        "cleanup": Cleanup(state=CleanupState.DONE),
        "ended_at": ACCEPTED + timedelta(minutes=9),
        "wake_at": None,
        "summary": Summary(n_cells=210, n_ok=210, n_error=0, complete=True),
        "phases": PhaseTimes(provision_s=180.0, execute_s=360.0, total_wall_s=540.0),
    }
    return a_job(**{**defaults, **changes})


def a_run(*jobs: Job, **changes: Any) -> Run:
    """The header over the given jobs: its outcome is theirs, if they agree on one."""
    outcomes = {job.outcome for job in jobs}
    outcome = outcomes.pop() if len(outcomes) == 1 else None
    defaults: dict[str, Any] = {
        "run_id": RUN_ID,
        "kind": SubmitKind.FORECAST,
        "request": {"request_id": "r-1"},
        "labels": {"team": "planning"},
        "requested_by": "",
        "families": {
            job.family: FamilyEntry(
                job_key=job.job_key, attempt=job.attempt, phase=job.phase, outcome=job.outcome
            )
            for job in jobs
        },
        "status": _STATUS.get(outcome, "FAILED") if outcome else "RUNNING",
        "outcome": outcome,
        "created_at": ACCEPTED,
        "finished_at": ACCEPTED + timedelta(minutes=9) if outcome else None,
        "limits": Limits(run=timedelta(hours=1)),
    }
    return Run(**{**defaults, **changes})


@dataclass
class Mailbox:
    """The submit topic: keeps each message and answers it as told (`None`: the plane is down)."""

    store: Store
    answer_state: str | None = "accepted"
    errors: list[Any] = field(default_factory=list)
    run: Run = field(default_factory=lambda: a_run(a_job()))
    jobs: tuple[Job, ...] = field(default_factory=lambda: (a_job(),))
    topics: list[str] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str]) -> str:
        message = json.loads(body)
        self.topics.append(topic)
        self.messages.append(message)
        if self.answer_state is not None:
            self._answer(message)
        return str(len(self.messages))

    def _answer(self, message: Mapping[str, Any]) -> None:
        row = {
            "schema": 1,
            "request_id": message["request_id"],
            "state": self.answer_state,
            "action": message["action"],
            "run_id": None if self.answer_state == "rejected" else self.run.run_id,
            "errors": self.errors,
            "message_id": str(len(self.messages)),
            "received_at": ACCEPTED,
        }
        path = request_path(ids.request_document_id(message["request_id"]))
        self.store.commit([Create(path=path, data=row)])
        if self.answer_state == "accepted" and message["action"] == "submit":
            put(self.store, self.run, *self.jobs)


def put(store: Store, run: Run, *jobs: Job) -> None:
    store.commit(
        [
            Create(path=run_path(run.run_id), data=run_to_document(run)),
            *(Create(path=job_path(job.job_key), data=job_to_document(job)) for job in jobs),
        ]
    )


@pytest.fixture
def make() -> Any:
    """The builders above, for test files: they cannot import one another."""

    class Builders:
        RUN_ID, ACCEPTED, PROJECT = RUN_ID, ACCEPTED, PROJECT
        plan = staticmethod(a_plan)
        job = staticmethod(a_job)
        ended_job = staticmethod(an_ended_job)
        run = staticmethod(a_run)

    return Builders


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def keep(store: MemoryStore) -> Callable[..., None]:
    """Put a run and its jobs into the store."""
    return lambda run, *jobs: put(store, run, *jobs)


@pytest.fixture
def objects() -> Objects:
    core = ObjectsCore()
    clock = SystemClock()
    for bucket in ("demo-code", "demo-warehouse"):
        core.make_bucket(bucket, clock.now())
    session = requests.Session()
    session.mount("http://", CoreAdapter(core.handle, clock.now))
    return StorageObjects(session, "http://objects", clock=clock)


@pytest.fixture
def dispatcher() -> TopicsCore:
    """Pub/Sub with the plane's topics; nobody pushes."""
    settings = Settings.from_env(PROJECT)
    waiting = [one for one in plane_subscriptions(settings, "") if one.endpoint is None]
    return TopicsCore(project=settings.project, topics=plane_topics(settings), subscriptions=waiting)


@pytest.fixture
def subscriptions(dispatcher: TopicsCore) -> EmbeddedSubscriptions:
    session = requests.Session()
    session.mount("http://", CoreAdapter(TopicsApi(dispatcher).handle, SystemClock().now))
    return EmbeddedSubscriptions("http://topics", "demo", session)


@pytest.fixture
def quota_of() -> Callable[..., GoogleQuota]:
    """Make the quota of a project: `quotas` are its limits, `faults` what becomes of the calls."""

    def make(**parts: Any) -> GoogleQuota:
        clock = SystemClock()
        session = requests.Session()
        session.mount("http://", CoreAdapter(ComputeCore(project="demo", **parts).handle, clock.now))
        # Shorter than the pause before a second try.
        timeout = timedelta(milliseconds=200)
        api = RestApi(session, "http://compute/compute/v1", clock=clock, timeout=timeout)
        return GoogleQuota("demo", api, None, clock=clock)

    return make


@pytest.fixture
def mailbox(store: MemoryStore) -> Mailbox:
    return Mailbox(store=store)


class Nobody:
    """Topics that nobody reads: dead letters of the intake."""

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str]) -> str:
        return "0"


@dataclass
class Intaken:
    """The submit topic with the plane's own intake at its far end: what one delivery of each message makes of it."""

    plane: Plane
    messages: int = 0

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str]) -> str:
        self.messages += 1
        if topic == self.plane.settings.submit_topic:
            now = self.plane.clock.now()
            Intake(self.plane).receive(body, message_id=str(self.messages), published_at=now)
        return str(self.messages)


@pytest.fixture
def intake(world: World, store: MemoryStore, objects: Objects) -> Intaken:
    """A topic whose messages the real plane takes in."""
    environment = {
        **PROJECT,
        "SF_COMPUTE_SA": "worker@demo.iam.gserviceaccount.com",
        "SF_SUBNETWORK_URI": "projects/demo/regions/us-central1/subnetworks/default",
        "SF_CONTAINER_IMAGE": "example/worker:1",
        "SF_PACKAGE_URI": "gs://demo-code/runs/forecast_worker-01234567.zip",
        "SF_ENTRYPOINT": "forecast_worker.main:main",
    }
    plane = Plane(
        settings=Settings.from_env(environment),
        store=store,
        objects=objects,
        topics=Nobody(),
        clock=world.clock,
        runtimes={},
        apis={},
    )
    return Intaken(plane)


@pytest.fixture
def world(
    store: MemoryStore,
    objects: Objects,
    mailbox: Mailbox,
    subscriptions: EmbeddedSubscriptions,
    quota_of: Callable[..., GoogleQuota],
) -> World:
    return World(
        settings=Settings.from_env(PROJECT),
        store=store,
        objects=objects,
        topics=mailbox,
        subscriptions=subscriptions,
        quota=quota_of(),
        clock=SystemClock(),
        server_time=lambda: datetime.now(UTC),
        answer_wait=timedelta(milliseconds=200),
        patience=timedelta(0),
    )


@pytest.fixture
def runtender(world: World) -> Callable[..., Result]:
    """Run the command with these arguments; `world` to run it on another one."""

    def run(*arguments: str, input: str | None = None, **changes: Any) -> Result:  # noqa: A002 - click's word
        obj = replace(world, **changes)
        return CliRunner().invoke(cli, arguments, input=input, obj=obj, catch_exceptions=False)

    return run


@pytest.fixture
def flights(tmp_path: Path, objects: Objects) -> Path:
    """The example config, its panel in the object server."""
    objects.put("demo-warehouse", "panels/flights.csv.gz", (FLIGHTS / "flights.csv.gz").read_bytes())
    config = json.loads((FLIGHTS / "flights.json").read_bytes())
    config["data"]["source_table"] = "gs://demo-warehouse/panels/flights.csv.gz"
    path = tmp_path / "flights.json"
    path.write_text(json.dumps(config))
    return path


SCHEMAS = Path(__file__).parent / "schemas"


@pytest.fixture
def parsed() -> Callable[[Result, str, str], Any]:
    """Read a command's standard output as JSON or YAML, and hold it to the schema of that name."""
    described = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")}
    resources = [(name, DRAFT202012.create_resource(schema)) for name, schema in described.items()]
    registry: Any = referencing.Registry().with_resources(resources)

    def read(result: Result, form: str, schema: str) -> Any:
        document = json.loads(result.stdout) if form == "json" else yaml.safe_load(result.stdout)
        jsonschema.Draft202012Validator(
            described[f"{schema}.json"],
            format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
            registry=registry,
        ).validate(document)
        return document

    return read


@pytest.fixture
def local_variables() -> dict[str, str]:
    """What a local cloud tells its clients."""
    return {
        "SF_BACKEND": "embedded",
        "SF_PROJECT_ID": "local",
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:1",
    }


@pytest.fixture
def home(tmp_path: Path, local_variables: dict[str, str]) -> Iterator[CloudHome]:
    """The home of a running local cloud: whoever runs one holds its lock."""
    home = CloudHome(tmp_path)
    lock = home.acquire()
    assert lock is not None
    # No process has this number: nothing is hit if a test ever makes a command signal the supervisor.
    nobody = 2**22 + 1
    home.write_state({"environment": {**local_variables, "LD_PRELOAD": "/tmp/evil.so"}, "supervisor": nobody})
    with lock:
        yield home

"""A run that a timer starts: one attempt per period, however often the timer fires, on every store."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import requests

from runtender.engine import Engine, Plane
from runtender.engine.intake import Intake, Receipt
from runtender.gcp.clock import SystemClock
from runtender.gcp.compute import RestApi
from runtender.gcp.storage import StorageObjects
from runtender.local.compute.core import ComputeCore
from runtender.local.http import CoreAdapter, CoreHandler, HttpRequest, HttpResponse
from runtender.local.objects import ObjectsCore
from runtender.local.publisher import EmbeddedTopics
from runtender.local.topics import TopicsApi, TopicsCore, plane_topics
from runtender.ports import Store
from runtender.runtimes.gce_vm import GceVm
from runtender.settings import Settings

SETTINGS = Settings.from_env(
    {
        "SF_PROJECT_ID": "local",
        "SF_CODE_BUCKET": "code",
        "SF_COMPUTE_SA": "worker@local.iam.gserviceaccount.com",
        "SF_SUBNETWORK_URI": "projects/local/regions/us-central1/subnetworks/s",
        "SF_CONTAINER_IMAGE": "us-docker.pkg.dev/local/r/worker:1",
    }
)
TASK = {"kind": "task", "config": {"name": "nightly", "command": ["true"]}, "every": "1d"}
MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def one_at_a_time(handle: CoreHandler) -> CoreHandler:
    """Cores know no threads."""
    gate = threading.Lock()

    def handled(request: HttpRequest, now: datetime) -> HttpResponse:
        with gate:
            return handle(request, now)

    return handled


class Timer:
    """A plane on a store, and what fires at it. Each firing is a message of its own, as Cloud Scheduler sends it."""

    def __init__(self, store: Store, session: requests.Session) -> None:
        clock = SystemClock()
        objects = ObjectsCore()
        objects.make_bucket("code", clock.now())
        topics = TopicsApi(TopicsCore(project="local", topics=plane_topics(SETTINGS), subscriptions=()))
        compute = ComputeCore(project="local")
        services = {"storage": objects.handle, "topics": topics.handle, "compute": compute.handle}
        for name, handle in services.items():
            session.mount(f"http://{name}", CoreAdapter(one_at_a_time(handle), clock.now))
        self.store = store
        self.plane = Plane(
            settings=SETTINGS,
            store=store,
            objects=StorageObjects(session, "http://storage", clock=clock),
            topics=EmbeddedTopics("http://topics", "local", session),
            clock=clock,
            runtimes={"gce": GceVm()},
            apis={"gce": RestApi(session, "http://compute/compute/v1", clock=clock)},
        )

    def fire(self, at: datetime, message_id: str) -> Receipt:
        """Deliver what was published `at` that moment."""
        return Intake(self.plane).receive(json.dumps(TASK).encode(), message_id=message_id, published_at=at)

    def end(self, receipt: Receipt) -> None:
        """Bring the attempt to an end: it is cancelled before there was a machine."""
        cancel = json.dumps({"action": "cancel", "run_id": receipt.run_id}).encode()
        cancelled = Intake(self.plane).receive(cancel, message_id=f"end {receipt}", published_at=MIDNIGHT)
        Engine(self.plane).step_all(cancelled.job_keys)

    def attempts(self) -> list[int]:
        return sorted(job.data["attempt"] for job in self.store.find("jobs"))


@pytest.fixture
def timer(store: Store) -> Iterator[Timer]:
    with requests.Session() as session:
        yield Timer(store, session)


def test_the_second_firing_of_a_period_starts_nothing_and_the_next_period_starts_the_next_attempt(timer):
    first = timer.fire(MIDNIGHT, "1")
    timer.end(first)
    again = timer.fire(MIDNIGHT + DAY - HOUR, "2")
    assert (first.state, again.state, again.run_id) == ("accepted", "duplicate", first.run_id)
    assert again.errors == ("this period's attempt was started before",)
    next_day = timer.fire(MIDNIGHT + DAY, "3")
    assert (next_day.state, next_day.run_id) == ("accepted", first.run_id)
    assert timer.attempts() == [1, 2]


def test_of_many_firings_at_once_one_starts_an_attempt(timer):
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda number: timer.fire(MIDNIGHT, str(number)), range(8)))
    assert sorted(receipt.state for receipt in receipts) == ["accepted", *["duplicate"] * 7]
    assert timer.attempts() == [1]


def test_the_same_message_again_gets_the_same_answer(timer):
    first, again = timer.fire(MIDNIGHT, "1"), timer.fire(MIDNIGHT, "1")
    assert (again.state, again.run_id) == (first.state, first.run_id)
    assert timer.attempts() == [1]


def test_a_firing_counts_for_the_period_in_which_it_was_published(timer):
    timer.end(timer.fire(MIDNIGHT, "1"))
    timer.end(timer.fire(MIDNIGHT + DAY, "2"))
    late = timer.fire(MIDNIGHT + DAY - HOUR, "delivered a day late")
    assert late.state == "duplicate"
    assert timer.attempts() == [1, 2]


def test_a_period_whose_predecessor_still_runs_is_left_out(timer):
    first = timer.fire(MIDNIGHT, "1")
    beside = timer.fire(MIDNIGHT + DAY, "2")
    assert beside.state == "duplicate"
    assert "still running" in beside.errors[0]
    timer.end(first)
    assert timer.fire(MIDNIGHT + DAY + HOUR, "3").state == "accepted"
    assert timer.attempts() == [1, 2]

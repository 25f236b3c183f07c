"""One local cloud per test process, and short words for what these tests do with it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from runtender.ids import request_document_id
from runtender.local.cloud import LocalCloud
from runtender.model import Job, Phase
from runtender.wire.documents import job_from_document, job_path, request_path, run_path

# Far longer than anything here takes; a machine under load must not fail a test.
PATIENCE_S = 60.0

Document = Mapping[str, Any]
Value = TypeVar("Value")


def eventually(look: Callable[[], Value | None]) -> Value:
    """Return the first value that `look` finds."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if (found := look()) is not None:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


@dataclass(frozen=True)
class Caller:
    """Somebody who knows the topic and the documents, and nothing else of the plane."""

    cloud: LocalCloud

    def publish(self, body: bytes | Document) -> str:
        """Send a message to the submit topic; return its id."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.cloud.topics.publish(self.cloud.settings.submit_topic, content, {})

    def answer(self, request_id: str) -> Document:
        """Wait for the plane's answer to a request."""
        row = eventually(lambda: self.cloud.store.get(request_path(request_document_id(request_id))))
        return row.data

    def submit(self, message: Document) -> Document:
        """Send a message and wait for the answer."""
        request_id = str(uuid.uuid4())
        self.publish({"request_id": request_id, **message})
        return self.answer(request_id)

    def task(self, *argv: str, **more: Any) -> Job:
        """Submit a plain task that no other test submits, and return its job as accepted."""
        config = {"name": f"task-{uuid.uuid4().hex[:8]}", "command": list(argv), **more}
        row = self.submit({"kind": "task", "config": config})
        assert row["state"] == "accepted", row
        return self.only_job(row["run_id"])

    def only_job(self, run_id: str) -> Job:
        """Read the one job of a run."""
        (job,) = self.cloud.store.find("jobs", where={"run_id": run_id})
        return job_from_document(job.data)

    def job(self, job_key: str) -> Job:
        """Read a job."""
        snapshot = self.cloud.store.get(job_path(job_key))
        assert snapshot is not None
        return job_from_document(snapshot.data)

    def run(self, run_id: str) -> Document:
        """Read a run's header."""
        snapshot = self.cloud.store.get(run_path(run_id))
        assert snapshot is not None
        return snapshot.data

    def await_that(self, statement: Callable[[], bool]) -> None:
        """Wait until a statement is true."""
        eventually(lambda: statement() or None)

    def await_phase(self, job: Job, *phases: Phase) -> Job:
        """Wait until a job is in one of `phases`."""

        def look() -> Job | None:
            now = self.job(job.job_key)
            return now if now.phase in phases else None

        return eventually(look)

    def logs(self, job: Job) -> str:
        """Read the last log that a job's machine stored, from where its terminal marker says."""
        bucket, status = job.plan.status_bucket, f"runs/gce-status/{job.plan.name}.json"
        marker = json.loads(self.cloud.objects.read(bucket, status, limit=1 << 16) or b"{}")
        log_bucket, _, name = marker["log_uri"].removeprefix("gs://").partition("/")
        return (self.cloud.objects.read(log_bucket, name, limit=1 << 20) or b"").decode()

    @contextmanager
    def calls(self) -> Iterator[dict[str, int]]:
        """Count the API calls of a block: the dictionary is filled when it ends."""
        before, during = self.cloud.calls(), dict[str, int]()
        yield during
        during |= {name: count - before.get(name, 0) for name, count in self.cloud.calls().items()}


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    folder = tmp_path_factory.mktemp("cloud")
    with LocalCloud(folder / "data", logs=folder / "logs", time_scale=40) as running:
        yield running


@pytest.fixture
def caller(cloud: LocalCloud) -> Caller:
    return Caller(cloud)


@pytest.fixture
def caller_of() -> Callable[[LocalCloud], Caller]:
    """For tests that need a cloud of their own."""
    return Caller

"""A plane as the local cloud runs it, without machines: dispatcher, functions in a process of their own, embedded store.

The bench plays the worker: it writes what a worker writes, and publishes the events of it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.bench.world import CONFIG, PANEL, SETTINGS

from runtender.gcp.clock import SystemClock
from runtender.gcp.session import plain_session
from runtender.gcp.storage import StorageObjects
from runtender.local.environment import clean_environment
from runtender.local.functions_process import FunctionsProcess
from runtender.local.http import utc_now
from runtender.local.sources import functions_source
from runtender.local.store import SqliteStore
from runtender.local.topics import TopicsCore, TopicsServer, plane_subscriptions, plane_topics
from runtender.model import Job
from runtender.settings import Settings
from runtender.wire.documents import job_from_document

PARTIAL_FUNCTIONS = Path(__file__).with_name("partial_functions.py")
WHOLE_FUNCTIONS = functions_source()

_ROOT = Path(__file__).parents[2]
# No handler waits for an operation, and no create for its minute.
_UNHINDERED = {"SF_PROVISION_WAIT_S": "0", "SF_API_BUDGET": "1000000", "SF_BACKEND": "embedded"}
_LONGEST_S = 100
_POLL_S = 0.005
_MOST_JOBS = 10_000

Message = tuple[bytes, Mapping[str, str]]


def submit_messages(name: str, count: int) -> list[Message]:
    """Return the messages of so many submits, each of a run of its own."""
    return [submit_message({**CONFIG, "run_name": f"{name}-{number}"}) for number in range(count)]


def submit_message(config: Mapping[str, Any]) -> Message:
    """Return the message that submits a config."""
    return json.dumps({"config": config}).encode(), {}


def marker_message(marker: str) -> Message:
    """Return the message by which Cloud Storage tells of a marker."""
    return b"", {"eventType": "OBJECT_FINALIZE", "bucketId": "code", "objectId": marker}


class Stack(AbstractContextManager["Stack"]):
    """A running plane whose entry points are those of `source`, beside the services at `url`."""

    def __init__(self, source: Path, folder: Path, url: str, **changes: str) -> None:
        folder.mkdir()
        self.store = SqliteStore(folder / "store.sqlite")
        self.objects = StorageObjects(plain_session(), url, clock=SystemClock())
        self.objects.put(*PANEL)
        variables = {**SETTINGS, **_UNHINDERED, **changes}
        self.settings = Settings.from_env(variables)
        self.functions = FunctionsProcess(source, folder / "functions.log")
        core = TopicsCore(
            project=self.settings.project,
            topics=plane_topics(self.settings),
            subscriptions=plane_subscriptions(self.settings, self.functions.url),
        )
        with ExitStack() as parts:
            parts.callback(self.store.close)
            self._topics = parts.enter_context(TopicsServer(core))
            parts.enter_context(self.functions)
            self.functions.start(
                {
                    **clean_environment(os.environ),
                    **variables,
                    "PYTHONPATH": str(_ROOT),
                    "SF_STORE_PATH": str(folder / "store.sqlite"),
                    "SF_TOPICS_ENDPOINT": self._topics.url,
                    "SF_COMPUTE_ENDPOINT": f"{url}/compute/v1",
                    "STORAGE_EMULATOR_HOST": url,
                }
            )
            self._parts = parts.pop_all()

    def deliver(self, topic: str, messages: Iterable[Message]) -> None:
        """Publish messages, and wait until each is acknowledged."""
        before, count = self._acknowledged(topic), 0
        for body, attributes in messages:
            self._topics.publish(topic, body, attributes, utc_now())
            count += 1
        end = time.monotonic() + _LONGEST_S
        while self._acknowledged(topic) < before + count:
            if time.monotonic() > end:
                raise SystemExit(f"{topic}: not all messages were acknowledged within {_LONGEST_S} s")
            time.sleep(_POLL_S)

    def seconds(self, topic: str, messages: Iterable[Message]) -> float:
        """Return how long it takes to deliver messages."""
        began = time.perf_counter()
        self.deliver(topic, messages)
        return time.perf_counter() - began

    def jobs(self) -> list[Job]:
        """Return all jobs."""
        return [job_from_document(found.data) for found in self.store.find("jobs", limit=_MOST_JOBS)]

    def _acknowledged(self, topic: str) -> int:
        outcomes: Mapping[str, int] = self._topics.counts()["subscriptions"][f"{topic}-push"]
        return outcomes["delivered"]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parts.close()

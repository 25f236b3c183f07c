"""The google backend: Google's own Firestore and Pub/Sub emulators, and the adapters that are deployed.

The functions run as in a project, with SF_BACKEND=google; only addresses differ. The emulator pushes as Pub/Sub does, about
50 ms after a message was published and two at a time per subscription. Streaming pull would save some 10 ms, and be another
way than the deployed one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import requests

from runtender.gcp.firestore import FirestoreStore
from runtender.gcp.pubsub import PubSubTopics
from runtender.local.backend.pubsub import EmulatedPubSub
from runtender.local.backend.relay import PushRelay
from runtender.local.emulators import FIRESTORE, PUBSUB, Found, RunningEmulator
from runtender.local.topics import Arrivals, plane_subscriptions, plane_topics
from runtender.ports import Store, Topics
from runtender.settings import Settings

_LOG = logging.getLogger("runtender.local")
_RESET_WAIT_S = 30.0
# Read before HTTP_PROXY by gRPC, which would ask a proxy of the caller's for the loopback address.
_NO_PROXY = {"no_grpc_proxy": "127.0.0.1,localhost"}


class GoogleBackend:
    """A backend on `emulators`, of which those that do not run yet work in `folder`, and log to `logs`.

    In emulators that others use as well, everything of `settings.project` is taken over, and removed in the end.
    Raises `LocalCloudError` where an emulator does not start.
    """

    def __init__(
        self,
        emulators: Sequence[Found],
        *,
        folder: Path,
        logs: Path,
        settings: Settings,
        functions_url: str,
        arrivals: Arrivals,
    ) -> None:
        self._project = settings.project
        with ExitStack() as parts:
            running = {
                found.emulator: parts.enter_context(
                    RunningEmulator(found, folder, logs / f"{found.emulator.name}.log")
                )
                for found in emulators
            }
            for emulator in running.values():
                emulator.await_ready()
            firestore, pubsub = running[FIRESTORE], running[PUBSUB]
            self.addresses: Mapping[str, str] = {one.emulator.name: one.url for one in running.values()}
            hosts = {one.emulator.variable: one.host for one in running.values()}
            self.variables: Mapping[str, str] = {**hosts, **_NO_PROXY}
            self._open_store(parts, firestore)
            self._open_topics(parts, pubsub, settings, functions_url, arrivals)
            self._parts = parts.pop_all()

    def _open_store(self, parts: ExitStack, firestore: RunningEmulator) -> None:
        if not firestore.is_ours:
            _forget_documents(firestore, self._project)
            parts.callback(_forget_documents, firestore, self._project)
        with _environment(self.variables):
            store = FirestoreStore(self._project)
            parts.callback(store.close)
            # The first call connects, which is when the environment is read.
            store.get("local/ready")
        self.store: Store = store

    def _open_topics(
        self,
        parts: ExitStack,
        pubsub: RunningEmulator,
        settings: Settings,
        functions_url: str,
        arrivals: Arrivals,
    ) -> None:
        topics, subscriptions = plane_topics(settings), plane_subscriptions(settings, functions_url)
        self._relay = parts.enter_context(PushRelay(subscriptions, arrivals))
        there = EmulatedPubSub(pubsub.host, self._project)
        parts.callback(there.close)
        there.make(
            topics,
            (
                replace(one, endpoint=None if one.endpoint is None else self._relay.endpoint(one))
                for one in subscriptions
            ),
        )
        if not pubsub.is_ours:
            parts.callback(there.remove, topics, subscriptions)
        self.topics: Topics = PubSubTopics(self._project, there.publisher)
        self._outbox = parts.enter_context(ThreadPoolExecutor(1, thread_name_prefix="outbox"))

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str], _now: datetime) -> Future[str]:
        published = self._outbox.submit(self.topics.publish, topic, body, attributes)
        published.add_done_callback(lambda future: _tell_failure(topic, future))
        return published

    def delivered(self) -> Mapping[str, int]:
        return self._relay.delivered()

    def close(self) -> None:
        self._parts.close()


def _tell_failure(topic: str, published: Future[str]) -> None:
    if (error := published.exception()) is not None:
        _LOG.warning("event lost", extra={"topic": topic}, exc_info=error)


def _forget_documents(firestore: RunningEmulator, project: str) -> None:
    path = f"emulator/v1/projects/{quote(project)}/databases/(default)/documents"
    with requests.Session() as session:
        session.trust_env = False
        session.delete(f"{firestore.url}/{path}", timeout=_RESET_WAIT_S).raise_for_status()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Let this process's environment have `variables` for a moment: the official client takes its address from nowhere else."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

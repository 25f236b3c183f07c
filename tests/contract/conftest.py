"""The stores of the contract suites, and Google's emulators, started once per test process."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runtender.errors import Retryable
from runtender.local.emulators import FIRESTORE, PUBSUB, Emulator, RunningEmulator, find_emulators
from runtender.local.store import MemoryStore, SqliteStore
from runtender.ports import Increment, Store


@pytest.fixture(scope="session")
def firestore_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the `host:port` of Google's Firestore emulator. For tests marked `emulator("firestore")`."""
    yield from _running(FIRESTORE, tmp_path_factory.mktemp("firestore"))


@pytest.fixture(scope="session")
def pubsub_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the `host:port` of Google's Pub/Sub emulator. For tests marked `emulator("pubsub")`."""
    yield from _running(PUBSUB, tmp_path_factory.mktemp("pubsub"))


@pytest.fixture(
    params=["memory", "sqlite", pytest.param("firestore", marks=pytest.mark.emulator("firestore"))]
)
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Each store in turn, empty."""
    match request.param:
        case "memory":
            yield MemoryStore()
        case "sqlite":
            embedded = SqliteStore(tmp_path / "store.db")
            yield embedded
            embedded.close()
        case _:
            from runtender.gcp.firestore import FirestoreStore  # noqa: PLC0415 - only where it is used

            monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", request.getfixturevalue("firestore_emulator"))
            # A project of its own is an empty database of its own.
            remote = FirestoreStore(f"test-{uuid.uuid4().hex[:12]}")
            _await_first_write(remote)
            yield remote
            remote.close()


def _await_first_write(store: Store) -> None:
    """Let the emulator answer one write: the one after a listener has left may be CANCELLED in its place."""
    for _ in range(10):
        with suppress(Retryable):
            store.commit([Increment(path="emulator/ready", amounts={"n": 1})])
            return


def _running(emulator: Emulator, folder: Path) -> Iterator[str]:
    (found,) = find_emulators(os.environ, [emulator])
    with RunningEmulator(found, folder, folder / "log") as running:
        running.await_ready()
        yield running.host

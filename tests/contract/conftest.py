"""Google's emulators for the contract suites, started once per test process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtender.local.emulators import FIRESTORE, PUBSUB, Emulator, RunningEmulator, find_emulators


@pytest.fixture(scope="session")
def firestore_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the `host:port` of Google's Firestore emulator. For tests marked `emulator("firestore")`."""
    yield from _running(FIRESTORE, tmp_path_factory.mktemp("firestore"))


@pytest.fixture(scope="session")
def pubsub_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the `host:port` of Google's Pub/Sub emulator. For tests marked `emulator("pubsub")`."""
    yield from _running(PUBSUB, tmp_path_factory.mktemp("pubsub"))


def _running(emulator: Emulator, folder: Path) -> Iterator[str]:
    (found,) = find_emulators(os.environ, [emulator])
    with RunningEmulator(found, folder, folder / "log") as running:
        running.await_ready()
        yield running.host

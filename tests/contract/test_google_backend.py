"""The google backend in emulators that others use as well: it takes its own project, and leaves nothing there."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import requests

from runtender.local.backend import BackendName, project_of
from runtender.local.backend.google import GoogleBackend
from runtender.local.emulators import FIRESTORE, PUBSUB, Found
from runtender.local.http import HttpRequest, HttpResponse, serve
from runtender.local.topics import once
from runtender.ports import Create
from runtender.settings import Settings

pytestmark = pytest.mark.emulator("firestore", "pubsub")

PATIENCE_S = 60.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)

Opened = Callable[[], Any]


@pytest.fixture
def project() -> str:
    return f"local-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def calls() -> list[str]:
    """The paths under which functions were called."""
    return []


@pytest.fixture
def opened(
    firestore_emulator: str, pubsub_emulator: str, project: str, calls: list[str], tmp_path: Path
) -> Iterator[Opened]:
    """Open a backend on the emulators of this test process."""
    emulators = (
        Found(emulator=FIRESTORE, host=firestore_emulator),
        Found(emulator=PUBSUB, host=pubsub_emulator),
    )

    def handle(request: HttpRequest) -> HttpResponse:
        calls.append(request.path)
        return HttpResponse(status=204)

    with serve(handle) as functions:

        @contextmanager
        def opened() -> Iterator[GoogleBackend]:
            backend = GoogleBackend(
                emulators,
                folder=tmp_path,
                logs=tmp_path,
                settings=Settings.from_env({"SF_PROJECT_ID": project, "SF_CODE_BUCKET": "code"}),
                functions_url=functions.url,
                arrivals=once,
            )
            try:
                yield backend
            finally:
                backend.close()
                backend.close()

        yield opened


def eventually(look: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def names(host: str, project: str, kind: str) -> set[str]:
    listed = requests.get(f"http://{host}/v1/projects/{project}/{kind}", timeout=PATIENCE_S).json()
    return {each["name"].rpartition("/")[2] for each in listed.get(kind, [])}


def test_what_a_service_publishes_reaches_the_function_of_its_topic(opened, calls):
    with opened() as backend:
        backend.publish("sf-tick", b"{}", {}, NOW)
        backend.topics.publish("sf-submit", b"{}", {})
        eventually(lambda: len(calls) == 2)
        assert sorted(calls) == ["/on_submit/", "/on_tick/"]
        eventually(lambda: sum(backend.delivered().values()) == 2)
        assert backend.delivered() == {"sf-submit-push": 1, "sf-marker-push": 0, "sf-tick-push": 1}


def test_clients_are_told_where_the_emulators_are_and_this_process_is_left_as_it_was(
    opened, firestore_emulator, pubsub_emulator
):
    before = dict(os.environ)
    with opened() as backend:
        assert backend.variables["FIRESTORE_EMULATOR_HOST"] == firestore_emulator
        assert backend.variables["PUBSUB_EMULATOR_HOST"] == pubsub_emulator
        assert backend.addresses == {
            "firestore": f"http://{firestore_emulator}",
            "pubsub": f"http://{pubsub_emulator}",
        }
        assert dict(os.environ) == before


def test_it_begins_with_nothing_and_leaves_nothing(opened, project, pubsub_emulator):
    with opened() as backend:
        backend.store.commit([Create(path="jobs/a", data={"n": 1})])
        assert "sf-marker-push" in names(pubsub_emulator, project, "subscriptions")
    assert names(pubsub_emulator, project, "topics") == set()
    assert names(pubsub_emulator, project, "subscriptions") == set()
    with opened() as again:
        assert again.store.get("jobs/a") is None


def test_clouds_that_share_emulators_have_projects_of_their_own(tmp_path: Path) -> None:
    shared = {"FIRESTORE_EMULATOR_HOST": "localhost:1"}
    one, other = (
        project_of(BackendName.GOOGLE, folder, shared) for folder in (tmp_path / "1", tmp_path / "2")
    )
    assert one != other
    assert one.startswith("local-")
    assert project_of(BackendName.GOOGLE, tmp_path, {}) == "local"
    assert project_of(BackendName.EMBEDDED, tmp_path, shared) == "local"

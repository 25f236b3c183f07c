"""A real object server and the official client, for what a worker does with storage."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from google.cloud.storage import Bucket, Client  # type: ignore[import-untyped]

from runtender.local.http import Fault, HttpRequest
from runtender.local.objects import ObjectsCore, ObjectServer


@pytest.fixture
def upload_faults() -> list[Fault]:
    """What the next uploads are answered, in order; empty: the proper answer."""
    return []


@pytest.fixture
def bucket(upload_faults: list[Fault], monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """The bucket `code` on a server that STORAGE_EMULATOR_HOST names."""

    def next_fault(method_id: str, _request: HttpRequest) -> Fault | None:
        return upload_faults.pop(0) if upload_faults and method_id == "storage.objects.insert" else None

    core = ObjectsCore(faults=next_fault)
    core.make_bucket("code", datetime.now(UTC))
    with ObjectServer(core) as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        client = Client(project="p")
        yield client.bucket("code")
        client.close()

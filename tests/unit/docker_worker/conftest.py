"""A real object server with the buckets of a run, and the example panel."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from google.cloud.storage import Client  # type: ignore[import-untyped]

from runtender.local.examples import build_flights_panel
from runtender.local.objects import ObjectsCore, ObjectServer
from runtender.worker.panel import Columns, Panel, read_panel


@pytest.fixture(scope="session")
def flights() -> Panel:
    content = build_flights_panel.PANEL.read_bytes()
    return read_panel(content, "gs://b/flights.csv.gz", Columns(ts_id="dest", date="date", target="flights"))


class Run:
    """One run's objects: what a worker finds, and what it leaves."""

    cells_uri = "gs://warehouse/artifacts/r/k/0123456789abcdef"

    def __init__(self, client: Client) -> None:
        self._client = client

    def config(self, *, models: tuple[str, ...] = ("theta",), name: str = "p.csv", **data: Any) -> None:
        """Store the config of a run on the panel `name`."""
        panel = {"source_table": f"gs://warehouse/{name}", "horizon": 7, **data}
        content = {"run_name": "r", "python_runtime": "gce", "models": models, "data": panel}
        self.put("code", "runs/r.json", json.dumps(content).encode())

    def put(self, bucket: str, name: str, content: bytes) -> None:
        """Store an object."""
        self._client.bucket(bucket).blob(name).upload_from_string(content)

    def left(self) -> dict[str, bytes]:
        """Return what the worker has stored, by its name below the folder of its nonce."""
        prefix = self.cells_uri.removeprefix("gs://warehouse/") + "/"
        bucket = self._client.bucket("warehouse")
        names = [blob.name for blob in self._client.list_blobs(bucket, prefix=prefix)]
        return {name.removeprefix(prefix): bucket.blob(name).download_as_bytes() for name in names}

    def summary(self, rank: int = 0) -> Mapping[str, Any]:
        """Return a rank's summary."""
        summary: Mapping[str, Any] = json.loads(self.left()[f"{rank:06d}.summary.json"])
        return summary


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Buckets `code` and `warehouse` on a local server, and the environment that the plane gives a worker."""
    core = ObjectsCore()
    for bucket in ("code", "warehouse"):
        core.make_bucket(bucket, datetime.now(UTC))
    with ObjectServer(core) as server:
        for name, value in {
            "STORAGE_EMULATOR_HOST": server.url,
            "SF_PROJECT_ID": "p",
            "SF_RUN_ID": "r",
            "SF_JOB_KEY": "sf-r-statistical-a1",
            "SF_NONCE": "0123456789abcdef",
            "SF_CELLS_URI": Run.cells_uri,
            # One slot: the test's own process.
            "OMP_NUM_THREADS": "1024",
        }.items():
            monkeypatch.setenv(name, value)
        client = Client(project="p")
        yield Run(client)
        client.close()

"""A small local cloud with real machines: objects, Compute Engine, and whatever the machines start."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from runtender.local.compute.core import ComputeCore
from runtender.local.compute.server import ComputeServer
from runtender.local.compute.timings import Timings
from runtender.local.http import LocalAuthority
from runtender.local.objects import ObjectsCore, ObjectServer
from runtender.local.vm.guest import Network, WorkerEnvironment
from runtender.local.vm.runner import VmRunner

ZONE = "us-central1-a"
PATIENCE_S = 20.0
TIMINGS = Timings(
    provision=timedelta(milliseconds=10),
    stage=timedelta(milliseconds=10),
    remove=timedelta(milliseconds=10),
    # What a machine runs when it goes down is real, on a computer that may have other things to do.
    spot_grace=timedelta(seconds=10),
    grace=timedelta(seconds=10),
)


class LocalCloud:
    """Machines that run the scripts they are given, and what a test wants to know of them."""

    def __init__(self, root: Path, timings: Timings) -> None:
        self.root = root
        authority = LocalAuthority.create(root / "authority")
        objects = ObjectsCore()
        objects.make_bucket("bucket", datetime.now(UTC))
        self.objects = ObjectServer(objects, authority=authority)
        self.compute = ComputeServer(ComputeCore(project="p", timings=timings), authority=authority)
        network = Network(
            storage_tls_port=self.objects.tls_port or 0,
            compute_tls_port=self.compute.tls_port,
            secrets_tls_port=0,
            storage_url=self.objects.url,
            ca_file=authority.ca_file,
        )
        self.runner = VmRunner(
            root=root / "machines",
            network=network,
            reports=self.compute,
            worker=WorkerEnvironment(variables={"FROM_IMAGE": "yes"}),
            scale=20,
        )
        self.compute.run(self.runner.apply)
        self._session = requests.Session()
        self._session.trust_env = False

    def close(self) -> None:
        self._session.close()
        self.compute.close()
        self.runner.close()
        self.objects.close()

    def start(
        self, script: str, *, name: str = "sf-vm", spot: bool = False, gpus: int = 0, **changes: Any
    ) -> None:
        """Insert a machine that runs `script`."""
        machine = "g2-standard-8" if gpus else "e2-standard-2"
        scheduling: dict[str, Any] = {"onHostMaintenance": "TERMINATE", "automaticRestart": False}
        if spot:
            scheduling |= {"provisioningModel": "SPOT", "instanceTerminationAction": "DELETE"}
        body = {
            "name": name,
            "machineType": f"zones/{ZONE}/machineTypes/{machine}",
            "scheduling": scheduling,
            "disks": [
                {
                    "boot": True,
                    "autoDelete": True,
                    "initializeParams": {"sourceImage": "projects/cos-cloud/global/images/family/cos-stable"},
                }
            ],
            "networkInterfaces": [{}],
            "metadata": {"items": [{"key": "startup-script", "value": script}]},
            "serviceAccounts": [{"email": "worker@p.iam.gserviceaccount.com", "scopes": []}],
            **changes,
        }
        answer = self._session.post(self._url(""), data=json.dumps(body), timeout=10)
        assert answer.status_code == 200, answer.text

    def delete(self, name: str = "sf-vm") -> None:
        assert self._session.delete(self._url(f"/{name}"), timeout=10).status_code == 200

    def status(self, name: str = "sf-vm") -> str:
        answer = self._session.get(self._url(f"/{name}"), timeout=10)
        return str(answer.json()["status"]) if answer.ok else str(answer.status_code)

    def serial(self, name: str = "sf-vm") -> str:
        answer = self._session.get(self._url(f"/{name}/serialPort"), timeout=10)
        return str(answer.json().get("contents", ""))

    def await_serial(self, words: str, name: str = "sf-vm") -> str:
        """Wait until the console shows `words`; return all it shows."""
        self.await_that(lambda: words in self.serial(name), lambda: self.serial(name))
        return self.serial(name)

    def await_status(self, status: str, name: str = "sf-vm") -> None:
        self.await_that(lambda: self.status(name) == status, lambda: self.status(name))

    def await_that(self, holds: Callable[[], bool], shown: Callable[[], object] = lambda: "") -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, shown()
            time.sleep(0.02)

    def object_named(self, name: str) -> str | None:
        answer = self._session.get(f"{self.objects.url}/storage/v1/b/bucket/o/{name}?alt=media", timeout=10)
        return answer.text if answer.ok else None

    def _url(self, path: str) -> str:
        return f"{self.compute.url}/compute/v1/projects/p/zones/{ZONE}/instances{path}"


@pytest.fixture
def a_cloud(tmp_path: Path) -> Iterator[Callable[..., LocalCloud]]:
    """Make a local cloud that ends with the test, its machines with it; arguments change the timings."""
    with ExitStack() as clouds:

        def make(**timings: timedelta) -> LocalCloud:
            cloud = LocalCloud(tmp_path, replace(TIMINGS, **timings))
            clouds.callback(cloud.close)
            return cloud

        yield make


@pytest.fixture
def cloud(a_cloud: Callable[..., LocalCloud]) -> LocalCloud:
    """A local cloud in which machines have time to go down."""
    return a_cloud()

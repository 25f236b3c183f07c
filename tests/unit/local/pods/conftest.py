"""Pods that really run, and a record of what is reported of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runtender.local.kubernetes.events import KillReason, PodKill, PodRemoved, PodStarted
from runtender.local.objects import ObjectsCore, ObjectServer
from runtender.local.pods.runner import PodRunner
from runtender.local.vm.guest import WorkerEnvironment

PATIENCE_S = 20.0


class Pods:
    """A runner of pods with its reports: `logs` and `exits` by uid, exits as (exit code, out of memory)."""

    def __init__(self, root: Path, storage_url: str) -> None:
        self.root = root
        self.starts: list[tuple[str, int]] = []
        self.logs: dict[str, bytes] = {}
        self.exits: dict[str, tuple[int, bool]] = {}
        self._storage_url = storage_url
        self.use_cores(None)

    def use_cores(self, cores: int | None) -> None:
        """Let each pod from now on have so many cores."""
        self.runner = PodRunner(
            root=self.root,
            storage_url=self._storage_url,
            reports=self,
            worker=WorkerEnvironment(variables={"FROM_IMAGE": "yes"}),
            cores=cores,
        )

    def pod_started(self, uid: str, restart: int = 0) -> None:
        self.starts.append((uid, restart))

    def pod_log(self, uid: str, chunk: bytes) -> None:
        self.logs[uid] = self.logs.get(uid, b"") + chunk

    def pod_exited(self, uid: str, exit_code: int, *, restart: int = 0, oom: bool = False) -> None:
        self.exits[uid] = (exit_code, oom)

    def start(self, *command: str, uid: str = "uid-1", **changes: Any) -> None:
        """Run a pod with this command."""
        given: dict[str, Any] = {
            "args": (),
            "env": {},
            "restart": 0,
            "name": f"job-0-{uid}",
            "command": command,
            **changes,
        }
        self.runner.apply(
            PodStarted(
                cluster="c",
                namespace="default",
                uid=uid,
                node="node-1",
                hostname="job-0",
                container="worker",
                image="worker:1",
                working_dir="",
                labels={},
                annotations={},
                volumes={},
                service_account="default",
                gpus=0,
                **given,
            )
        )

    def kill(self, seconds: float, reason: KillReason = KillReason.EVICTED, uid: str = "uid-1") -> None:
        self.runner.apply(PodKill(uid=uid, reason=reason, grace=timedelta(seconds=seconds)))

    def remove(self, uid: str = "uid-1") -> None:
        self.runner.apply(PodRemoved(uid=uid))

    def await_exit(self, uid: str = "uid-1") -> tuple[int, bool]:
        self.await_that(lambda: uid in self.exits)
        return self.exits[uid]

    def await_log(self, words: bytes, uid: str = "uid-1") -> None:
        self.await_that(lambda: words in self.logs.get(uid, b""))

    def await_that(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, (self.logs, self.exits)
            time.sleep(0.01)


@pytest.fixture
def storage() -> Iterator[ObjectServer]:
    """A Cloud Storage with the bucket `code`."""
    core = ObjectsCore()
    core.make_bucket("code", datetime.now(UTC))
    with ObjectServer(core) as server:
        yield server


@pytest.fixture
def pods(tmp_path: Path, storage: ObjectServer) -> Iterator[Pods]:
    """Pods that end with the test."""
    found = Pods(tmp_path, storage.url)
    yield found
    found.runner.close()

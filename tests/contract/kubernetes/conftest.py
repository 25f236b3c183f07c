"""A served cluster, with pods that are played: real clients talk to it over HTTPS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runtender.local.http import LocalAuthority
from runtender.local.kubernetes.core import KubernetesCore
from runtender.local.kubernetes.events import Event, PodKill, PodStarted
from runtender.local.kubernetes.nodes import NodePool
from runtender.local.kubernetes.schema import installed_schemas
from runtender.local.kubernetes.server import KubernetesServer
from runtender.local.kubernetes.timings import Timings


@dataclass(frozen=True, kw_only=True)
class Served:
    """A served cluster and the authorities that its two addresses are known by."""

    server: KubernetesServer
    own: LocalAuthority
    public: LocalAuthority


class Played:
    """Pods without processes: `say ... ` prints and ends well, `fail N` ends with N, and everything else runs on."""

    def __init__(self, server: KubernetesServer) -> None:
        self._server = server

    def apply(self, event: Event) -> None:
        if isinstance(event, PodStarted):
            self._server.pod_started(event.uid, event.restart)
            match event.command:
                case ("say", *words):
                    for word in words:
                        self._server.pod_log(event.uid, f"{word}\n".encode())
                    self._server.pod_exited(event.uid, 0, restart=event.restart)
                case ("fail", code):
                    self._server.pod_exited(event.uid, int(code), restart=event.restart)
        elif isinstance(event, PodKill):
            self._server.pod_exited(event.uid, 143)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A cluster of four nodes whose time runs fifty times as fast."""
    own = LocalAuthority.create(tmp_path / "own", hosts=["kubernetes"])
    public = LocalAuthority.create(tmp_path / "public", hosts=["localhost"])
    core = KubernetesCore(
        born=datetime.now(UTC),
        pools=[NodePool(nodes=4)],
        schemas=installed_schemas(34),
        timings=Timings().scaled(50),
    )
    with KubernetesServer(core, own=own, public=public) as server:
        server.run(Played(server).apply)
        yield Served(server=server, own=own, public=public)


def a_job(name: str, *command: str, workers: int = 2, **spec: Any) -> dict[str, Any]:
    container = {"name": "worker", "image": "registry/worker:1", "command": list(command)}
    whole = {
        "completions": workers,
        "parallelism": workers,
        "completionMode": "Indexed",
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        **spec,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": whole}


@pytest.fixture
def job() -> Any:
    """The builder of Jobs: a name, and what each of its pods plays."""
    return a_job

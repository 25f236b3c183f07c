"""A simulated cluster with a hand on its clock, and pods that do what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runtender.local.http import HttpRequest
from runtender.local.kubernetes.core import KubernetesCore
from runtender.local.kubernetes.events import Event, PodKill, PodStarted
from runtender.local.kubernetes.schema import installed_schemas

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def a_pod_spec(**changes: Any) -> dict[str, Any]:
    """Return the spec of a pod that runs once; `changes` to its container are named `container`."""
    container = {
        "name": "worker",
        "image": "registry/worker:1",
        "command": ["run"],
        "resources": {"requests": {"cpu": "4", "memory": "19Gi"}},
        **changes.pop("container", {}),
    }
    return {"restartPolicy": "Never", "containers": [container], **changes}


def a_pod(name: str = "p", **changes: Any) -> dict[str, Any]:
    """Return a pod."""
    metadata = {"name": name, **changes.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": a_pod_spec(**changes)}


def a_job(
    name: str = "j", *, workers: int = 2, pod: Mapping[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """Return an Indexed Job; `spec` replaces fields of its spec, None removes them."""
    whole = {
        "completions": workers,
        "parallelism": workers,
        "completionMode": "Indexed",
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": a_pod_spec(**(pod or {}))},
        **spec,
    }
    kept = {key: value for key, value in whole.items() if value is not None}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": kept}


Ending = Callable[[PodStarted], int | None]
"""How a container ends: its exit code, or None to run on."""


def well(_started: PodStarted) -> int | None:
    return 0


def never(_started: PodStarted) -> int | None:
    return None


@dataclass
class Cluster:
    """A core, a clock, the calls of a client, and a runner of pods that does as `ending` says after `takes` seconds."""

    core: KubernetesCore
    now: datetime = START
    ending: Ending = never
    takes: float = 0
    obeys: bool = True
    events: list[Event] = field(default_factory=list)
    _due: list[tuple[datetime, str, int, int]] = field(default_factory=list)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> tuple[int, Any]:
        request = HttpRequest(
            method=method,
            path=path,
            query=query,
            headers=headers or {},
            body=b"" if body is None else json.dumps(body).encode(),
        )
        answer = self.core.handle(request, self.now)
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        return answer.status, answer.json() if is_json and "watch" not in query else answer.body.decode()

    def create_job(self, body: dict[str, Any], **query: Any) -> dict[str, Any]:
        status, document = self.call("POST", JOBS, body, **query)
        assert status == 201, document
        return dict(document)

    def create_pod(self, body: dict[str, Any]) -> dict[str, Any]:
        status, document = self.call("POST", PODS, body)
        assert status == 201, document
        return dict(document)

    def job(self, name: str = "j") -> dict[str, Any]:
        status, document = self.call("GET", f"{JOBS}/{name}")
        assert status == 200, document
        return dict(document)

    def pods(self, **query: Any) -> list[dict[str, Any]]:
        return list(self.call("GET", PODS, **query)[1]["items"])

    def pod(self, name: str = "p") -> dict[str, Any]:
        status, document = self.call("GET", f"{PODS}/{name}")
        assert status == 200, document
        return dict(document)

    def reasons(self, about: str = "") -> list[str]:
        """Return the reasons of the events there are, in order of their time."""
        _, listed = self.call("GET", "/api/v1/namespaces/default/events")
        found = [one for one in listed["items"] if about in one["involvedObject"]["name"]]
        ordered = sorted(found, key=lambda one: int(one["metadata"]["resourceVersion"]))
        return [str(one["reason"]) for one in ordered]

    def conditions(self, document: Mapping[str, Any]) -> dict[str, str]:
        """Return the reasons of the conditions that hold, by type."""
        listed = document["status"].get("conditions") or ()
        return {one["type"]: one.get("reason", "") for one in listed if one["status"] == "True"}

    def wait(self, seconds: float, step: float = 1) -> None:
        """Let time pass in steps, and the runner act after each."""
        until = self.now + timedelta(seconds=seconds)
        while self.now < until:
            self.now = min(until, self.now + timedelta(seconds=step))
            self._act()

    def started(self) -> list[PodStarted]:
        return [event for event in self.events if isinstance(event, PodStarted)]

    def killed(self) -> list[PodKill]:
        return [event for event in self.events if isinstance(event, PodKill)]

    def _act(self) -> None:
        for due, uid, restart, code in [one for one in self._due if one[0] <= self.now]:
            self._due.remove((due, uid, restart, code))
            self.core.pod_exited(uid, code, self.now, restart=restart)
        for event in self.core.advance(self.now):
            self.events.append(event)
            if isinstance(event, PodStarted):
                self.core.pod_started(event.uid, self.now, event.restart)
                ends = self.ending(event)
                if ends is not None:
                    due = self.now + timedelta(seconds=self.takes)
                    self._due.append((due, event.uid, event.restart, ends))
            elif isinstance(event, PodKill) and self.obeys:
                self.core.pod_exited(event.uid, 143, self.now)


@pytest.fixture
def make_cluster() -> Callable[..., Cluster]:
    """Make a cluster; what a core takes may be given, and how its pods end."""

    def make(*, ending: Ending = never, takes: float = 0, obeys: bool = True, **options: Any) -> Cluster:
        minor = options.get("minor", 34)
        core = KubernetesCore(**{"born": START, "schemas": installed_schemas(minor), **options})
        return Cluster(core=core, ending=ending, takes=takes, obeys=obeys)

    return make


@pytest.fixture
def cluster(make_cluster: Callable[..., Cluster]) -> Cluster:
    """A cluster of three nodes with room for one worker each, whose pods run until they are told to end."""
    return make_cluster()


@pytest.fixture
def job() -> Callable[..., dict[str, Any]]:
    """The builder of Jobs."""
    return a_job


@pytest.fixture
def pod() -> Callable[..., dict[str, Any]]:
    """The builder of pods."""
    return a_pod

"""A plane with a standing cluster: real ports and runtimes over the simulated GKE and Kubernetes, and pods that a test plays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from runtender.engine import Engine, Watchdog
from runtender.errors import Retryable
from runtender.gcp.kubernetes import GkeApi
from runtender.ids import Stage, marker_object, parse_marker_object
from runtender.local.container.clusters import GkeCluster
from runtender.local.container.core import ContainerCore
from runtender.local.http import DROPPED, Fault, HttpRequest, HttpResponse
from runtender.local.kubernetes.core import KubernetesCore
from runtender.local.kubernetes.events import PodKill, PodStarted
from runtender.local.kubernetes.nodes import NodePool
from runtender.local.simulation.session import CoreSession
from runtender.runtimes.gke_job import GkeJob

CONFIG = {
    "run_name": "flights",
    "python_runtime": "gke",
    "data": {"source_table": "gs://wh/panel.csv"},
    "models": ["theta"],
    "compute": {"workers": 4},
}
JOBS = "/apis/batch/v1/namespaces/default/jobs"
TASK = {
    "name": "clean",
    "runtime": "gke",
    "image": "us-docker.pkg.dev/p/r/task:1",
    "command": ["clean"],
    "workers": 4,
}
UNAVAILABLE = Fault(answer=HttpResponse(status=503))
SILENT = Fault(answer=DROPPED)
Death = Callable[[str, tuple[Any, ...]], bool]
METHODS = (
    "jobs.create", "jobs.delete", "jobs.deletecollection", "jobs.get", "jobs.list", "pods.deletecollection", "pods.list",
    "pods.log.get", "events.list",
)  # fmt: skip


class Killed(BaseException):
    """The process of a handler has come to an end."""


class Fragile:
    """A port whose caller dies when `dies(method, args)` says so, before the call or after it."""

    def __init__(self, port: Any) -> None:
        self._port = port
        self.dies_before: Death = _never
        self.dies_after: Death = _never

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._port, name)

        def answer(*args: Any, **named: Any) -> Any:
            if self.dies_before(name, args):
                raise Killed
            result = call(*args, **named)
            if self.dies_after(name, args):
                raise Killed
            return result

        return answer if callable(call) else call


class Objects(Fragile):
    """The object store, of which some buckets cannot be read for a while."""

    def __init__(self, objects: Any) -> None:
        super().__init__(objects)
        self.broken: set[str] = set()
        self.dies_before = self._check

    def _check(self, _name: str, args: tuple[Any, ...]) -> bool:
        if args[0] in self.broken:
            raise Retryable(f"bucket {args[0]} does not answer")
        return False


def _never(_name: str, _args: tuple[Any, ...]) -> bool:
    return False


class ClusterWorld:
    """A plane and one standing cluster, born long ago. Pods start by themselves, and end when a test says so.

    What a worker tells reaches the plane at once while `events` is true. `faults` maps a method of Kubernetes to what it is
    answered instead, after so many seconds; `refused` counts those answers.
    """

    config = CONFIG

    def __init__(self, base: Any, *, nodes: int = 4, most: int | None = None) -> None:
        self.base, self.clock = base, base.clock
        self.store, self.objects = Fragile(base.store), Objects(base.objects)
        born = self.clock.now() - timedelta(days=90)
        self.faults: dict[str, tuple[Fault | None, float]] = {}
        self.refused: Counter[str] = Counter()
        self.kubernetes = KubernetesCore(
            born=born, pools=(NodePool(nodes=nodes, most=most),), faults=self._fault
        )
        self.gke = ContainerCore(project="p", faults=self._fault)
        self.gke.put(
            GkeCluster(name="standing", location="us-central1-a", born=born, dns_endpoint="standing.gke")
        )
        self.events = True
        self.pods: dict[int, PodStarted] = {}
        cores = {
            "gke": self.gke.handle,
            "standing.gke": self.kubernetes.handle,
            "silent.gke": lambda *_: DROPPED,
        }
        self.session = CoreSession(cores, self.clock.now)
        self.plane = replace(
            base.plane,
            store=self.store,
            objects=self.objects,
            settings=replace(base.plane.settings, gke_cluster="standing"),
            runtimes={**base.plane.runtimes, "gke": GkeJob()},
            apis={**base.plane.apis, "gke": self.api()},
        )
        base.plane = self.plane
        self.engine = base.engine = Engine(self.plane)
        self.watchdog = Watchdog(self.plane, self.engine)

    def api(self) -> GkeApi:
        """The adapter of a process that has just begun."""
        return GkeApi("http://gke/v1", clock=self.clock, sessions=lambda _https: self.session)

    def _fault(self, method: str, _request: Any) -> Fault | None:
        if method not in self.faults:
            return None
        fault, seconds = self.faults[method]
        self.clock.sleep(seconds)
        self.refused[method] += fault is not None
        return fault

    def fail(self, *methods: str, fault: Fault = UNAVAILABLE, after: float = 0) -> None:
        """Let calls of Kubernetes fail from now on: `fail("jobs.get")`, or all of them."""
        self.faults |= {f"kubernetes.{method}": (fault, after) for method in methods or METHODS}

    def delay(self, method: str, seconds: float) -> None:
        """Let a call of Kubernetes take its time from now on."""
        self.faults[f"kubernetes.{method}"] = (None, seconds)

    def put_silent_cluster(self) -> None:
        """Let there be one more cluster, whose Kubernetes does not answer."""
        born = self.clock.now()
        self.gke.put(GkeCluster(name="silent", location="europe-west1", born=born, dns_endpoint="silent.gke"))

    # --- the plane

    def submit(self, config: Any = CONFIG, **message: Any) -> Any:
        """Submit and take the first steps, as a handler does."""
        receipt = self.base.send({"config": config, **message}, f"m-{self.clock.token()}")
        assert receipt.state == "accepted", receipt.errors
        self.base.start(receipt)
        self.key = receipt.job_keys[0]
        return receipt

    def submit_task(self) -> Any:
        return self.submit(TASK, kind="task")

    def cancel(self) -> None:
        self.base.start(self.base.send({"action": "cancel", "run_id": self.job["run_id"]}, "m-cancel"))

    @property
    def job(self) -> Any:
        return self.base.document(f"jobs/{self.key}")

    @property
    def end(self) -> tuple[Any, ...]:
        return self.job["outcome"], self.job["reason"]

    @property
    def row(self) -> Any:
        return self.job["resources"][-1]

    def calls(self) -> Counter[str]:
        """How often each method of Kubernetes was called."""
        return Counter(self.kubernetes.counts())

    # --- time

    def pass_time(self, seconds: float) -> None:
        """Let time pass without a tick, a second at a time."""
        for _ in range(int(seconds)):
            self.clock.sleep(1)
            self._play()

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.pass_time(60)
            self.watchdog.tick()

    def _play(self) -> None:
        while events := self.kubernetes.advance(self.clock.now()):
            for event in events:
                if isinstance(event, PodStarted):
                    self._begin(event)
                elif isinstance(event, PodKill):
                    self.kubernetes.pod_exited(event.uid, 143, self.clock.now())

    def _begin(self, pod: PodStarted) -> None:
        index = int(pod.env.get("JOB_COMPLETION_INDEX", "0"))
        self.pods[index] = pod
        self.kubernetes.pod_started(pod.uid, self.clock.now())
        if self.is_ours(pod) and pod.env.get("SF_STATUS_BUCKET"):
            self.mark(index, "started", status="RUNNING")

    @staticmethod
    def is_ours(pod: PodStarted) -> bool:
        return "sf-nonce" in pod.labels

    def apply(self, method: str, path: str, body: Any = None) -> None:
        """Call Kubernetes as somebody else."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        content = b"" if body is None else json.dumps(body).encode()
        request = HttpRequest(method=method, path=path, headers={"Content-Type": kind}, body=content)
        answer = self.kubernetes.apply(request, self.clock.now())
        assert answer.status < 300, answer.body

    @property
    def job_path(self) -> str:
        return f"{JOBS}/{self.row['name']}"

    @property
    def is_clean(self) -> bool:
        left = self.kubernetes.leftovers()
        return (left.jobs, left.pods) == ((), ())

    # --- workers

    def mark(self, index: int | None, stage: Stage, *, nonce: str = "", **body: Any) -> str:
        """Write a marker, and let the plane hear of it."""
        name = marker_object(self.key, nonce or self.row["nonce"], index, stage)
        self.objects.create("code", name, json.dumps({"writer": "bootstrap", **body}).encode())
        if self.events:
            self.hear(name)
        return name

    def hear(self, name: str) -> None:
        where = parse_marker_object(name)
        assert where is not None
        self.engine.notice(where)

    def summarise(self, index: int, *, ok: int = 2, errors: int = 0, **changes: Any) -> None:
        nonce = self.row["nonce"]
        counts = {"n_cells": ok + errors, "n_ok": ok, "n_error": errors, "complete": True, "nonce": nonce}
        self.put_result(f"{nonce}/{index:06}.summary.json", json.dumps({**counts, **changes}).encode())

    def put_result(self, name: str, body: bytes) -> None:
        folder = self.job["plan"]["cells_uri"].removeprefix("gs://wh/")
        self.objects.put("wh", f"{folder}/{name}", body)

    def end_worker(self, index: int, code: int = 0, *, tells: bool = True, exits: bool = True) -> None:
        """Let a worker end as its bootstrap does: summary, terminal marker, and a moment later the container's end."""
        if code == 0 and tells:
            self.summarise(index)
        if exits and not self.events:
            self._exit(index, code)
        if tells:
            status = "FAILED" if code else "SUCCEEDED"
            self.mark(index, "terminal", status=status, exit_code=code)
        if exits and self.events:
            self._exit(index, code)

    def _exit(self, index: int, code: int) -> None:
        self.kubernetes.pod_exited(self.pods[index].uid, code, self.clock.now())


@pytest.fixture
def a_cluster_world(new_world):
    """Make a plane with a standing cluster: `a_cluster_world(nodes=1)`."""
    return lambda **parts: ClusterWorld(new_world(), **parts)


@pytest.fixture
def gke(a_cluster_world):
    return a_cluster_world()


@pytest.fixture
def at_work(gke):
    """A plane whose job's four workers have started."""
    gke.submit()
    gke.pass_time(30)
    assert gke.job["phase"] == "RUNNING"
    return gke


@pytest.fixture(scope="session")
def killed():
    return Killed


@pytest.fixture
def no_answer():
    """What a call that gets no answer is answered."""
    return SILENT

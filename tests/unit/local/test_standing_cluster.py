"""The standing cluster on real time: Jobs whose pods are processes, and what a scenario does to them."""

from __future__ import annotations

import json
import ssl
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runtender.local.http import HttpRequest, no_faults, utc_now
from runtender.local.scenario.clock import Timers
from runtender.local.scenario.cluster_rules import INDEX_ANNOTATION, PodBlow, PodRule
from runtender.local.scenario.pods import PodStrikes
from runtender.local.standing_cluster import StandingCluster
from runtender.local.watch import processes_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="simulated pods need Linux")

# A node that is lost is forgotten after ten minutes.
SCALE = 200.0
PATIENCE_S = 30.0
SECOND = timedelta(seconds=SCALE)
JOBS = "/apis/batch/v1/namespaces/default/jobs"
IGNORED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


class World:
    """A standing cluster with Jobs of two workers, and a scenario's rules at work in it."""

    def __init__(self, cluster: StandingCluster) -> None:
        self.cluster = cluster

    def call(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        headers = {"Content-Type": "application/json"}
        content = b"" if body is None else json.dumps(body).encode()
        request = HttpRequest(method=method, path=path, query=query, headers=headers, body=content)
        return self.cluster.server.apply(request).json()

    def create(self, command: str, **spec: Any) -> None:
        # A node has room for one.
        room = {"requests": {"cpu": "5"}}
        container = {
            "name": "worker",
            "image": "worker:1",
            "command": ["sh", "-c", command],
            "resources": room,
        }
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "work"},
            "spec": {
                "completions": 2,
                "parallelism": 2,
                "completionMode": "Indexed",
                "backoffLimitPerIndex": 0,
                "podReplacementPolicy": "Failed",
                "podFailurePolicy": {"rules": [IGNORED]},
                "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
                **spec,
            },
        }
        assert self.call("POST", JOBS, body)["kind"] == "Job"

    def status(self) -> Any:
        return self.call("GET", f"{JOBS}/work").get("status", {})

    def condition(self) -> str:
        """The last condition that holds, with its reason."""
        held = [one for one in self.status().get("conditions", ()) if one["status"] == "True"]
        return f"{held[-1]['type']} {held[-1].get('reason', '')}".strip() if held else ""

    def await_that(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, (self.status(), self.cluster.server.documents("pods"))
            time.sleep(0.02)


@pytest.fixture
def a_world(tmp_path: Path) -> Callable[..., Any]:
    """Open a world with a scenario's rules; it ends with the block."""

    @contextmanager
    def make(*rules: PodRule, nodes: int = 4) -> Iterator[World]:
        cluster = StandingCluster(
            folder=tmp_path,
            project="p",
            region="us-central1",
            nodes=nodes,
            variables={"STORAGE_EMULATOR_HOST": "http://127.0.0.1:9"},
            scale=SCALE,
            faults=no_faults,
            now=utc_now,
        )
        with cluster, Timers(SCALE) as timers:
            strikes = PodStrikes(rules, timers=timers, cluster=cluster.server, pods=cluster.pods)
            cluster.run(strikes.saw)
            yield World(cluster)
        assert processes_of(tmp_path / "pods") == []

    return make


def test_a_job_runs_as_processes_and_its_logs_can_be_read(a_world):
    with a_world() as world:
        world.create("echo index $JOB_COMPLETION_INDEX")
        world.await_that(lambda: world.condition().startswith("Complete"))

        (pod, _) = world.cluster.server.documents("pods")
        index = pod["metadata"]["annotations"][INDEX_ANNOTATION]
        path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/log"
        log = world.cluster.server.apply(HttpRequest(method="GET", path=path)).body
        assert log == f"index {index}\n".encode()
        assert world.status()["completedIndexes"] == "0,1"
        assert world.cluster.leftovers() == {"jobs": 1, "pods": 2, "pod_processes": 0}

        world.call("DELETE", f"{JOBS}/work", propagationPolicy="Background")
        world.await_that(lambda: world.cluster.leftovers() == {"jobs": 0, "pods": 0, "pod_processes": 0})


def test_a_cluster_that_closes_ends_its_pods(a_world):
    with a_world() as world:
        world.create("sleep 100")
        world.await_that(lambda: world.cluster.pods.processes() >= 4)


def test_gke_says_where_it_is_and_its_name_is_vouched_for(a_world):
    with a_world() as world:
        url = f"{world.cluster.container_url}/v1/projects/p/locations/us-central1/clusters/standing"
        with urllib.request.urlopen(url) as answer:
            cluster = json.load(answer)
        name = cluster["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"]
        context = ssl.create_default_context(cafile=str(world.cluster.roots_file))
        with urllib.request.urlopen(f"https://{name}/version", context=context) as answer:
            assert json.load(answer)["minor"].startswith("34")
        assert world.cluster.counts() == {
            "container.projects.locations.clusters.get": 1,
            "kubernetes.version.get": 1,
        }


def test_pods_without_a_node_wait_until_one_joins(a_world):
    with a_world(nodes=0) as world:
        world.create("true")
        world.await_that(lambda: len(world.cluster.server.documents("pods")) == 2)
        assert world.cluster.pods.processes() == 0
        world.cluster.add_node()
        world.cluster.add_node()
        world.await_that(lambda: world.condition().startswith("Complete"))


# Index 0 works until it is struck, and is done at once when it is started again; index 1 has nothing to do.
ONCE = "test $JOB_COMPLETION_INDEX -eq 1 -o -e {mark} && exit 0; touch {mark}; exec sleep 100"


@pytest.mark.parametrize("blow", [PodBlow.EVICT, PodBlow.PREEMPT, PodBlow.TAKE_NODE, PodBlow.LOSE_NODE])
def test_what_kubernetes_takes_away_is_replaced_and_not_counted(a_world, tmp_path, blow):
    with a_world(PodRule(blow=blow, index=0, after=SECOND, first=1)) as world:
        world.create(ONCE.format(mark=tmp_path / "mark"))
        world.await_that(lambda: world.condition().startswith("Complete"))
        assert world.status()["completedIndexes"] == "0,1"


def struck_once(world: World, command: str = "exec sleep 100", **spec: Any) -> Any:
    world.create(command, **spec)
    world.await_that(lambda: world.condition().startswith("Fail"))
    return world.status()


def test_a_container_may_end_with_a_code_of_the_scenarios_choice(a_world):
    rules: Sequence[PodRule] = (
        PodRule(blow=PodBlow.END_CONTAINER, index=0, exit_code=9, out_of_memory=True),
        PodRule(blow=PodBlow.END_CONTAINER, index=1, exit_code=0),
    )
    with a_world(*rules) as world:
        assert struck_once(world)["failedIndexes"] == "0"
        ended = {
            pod["metadata"]["annotations"][INDEX_ANNOTATION]: pod["status"]["containerStatuses"][0]["state"][
                "terminated"
            ]
            for pod in world.cluster.server.documents("pods")
        }
        assert (ended["0"]["exitCode"], ended["0"]["reason"]) == (9, "OOMKilled")
        assert ended["1"]["exitCode"] == 0


def test_a_worker_may_be_killed_below_the_program_that_tells_of_it(a_world):
    with a_world(PodRule(blow=PodBlow.KILL_WORKER, index=1, after=SECOND)) as world:
        status = struck_once(world, "test $JOB_COMPLETION_INDEX = 0 && exit 0; sleep 100; exit 4")
        assert (status["completedIndexes"], status["failedIndexes"]) == ("0", "1")


def test_a_job_may_be_deleted_by_somebody(a_world):
    with a_world(PodRule(blow=PodBlow.DELETE_JOB, first=1)) as world:
        world.create("exec sleep 100")
        world.await_that(lambda: world.cluster.leftovers() == {"jobs": 0, "pods": 0, "pod_processes": 0})


def test_a_rule_hits_those_whose_marks_say_so():
    rule = PodRule(blow=PodBlow.EVICT, index=3, attempt=2)
    assert rule.matches(labels={"sf-attempt": "2"}, annotations={INDEX_ANNOTATION: "3"})
    assert not rule.matches(labels={"sf-attempt": "1"}, annotations={INDEX_ANNOTATION: "3"})
    assert not rule.matches(labels={"sf-attempt": "2"}, annotations={})
    assert PodRule(blow=PodBlow.EVICT).matches(labels={}, annotations={})

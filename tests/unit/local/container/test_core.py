"""The simulated GKE API: which clusters there are, and how each is reached."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest

from runtender.local.container.clusters import GkeCluster, Status
from runtender.local.container.core import GET, LIST, ContainerCore
from runtender.local.http import Fault, HttpRequest, google_error
from runtender.local.kubernetes.nodes import NodePool

BORN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def a_cluster(name: str = "standing", location: str = "us-central1", **changes) -> GkeCluster:
    facts = {"endpoint": "127.0.0.1:1443", "authority": "PEM", "dns_endpoint": "localhost:2443", **changes}
    return GkeCluster(name=name, location=location, born=BORN, **facts)


def ask(core: ContainerCore, path: str, method: str = "GET"):
    answer = core.handle(HttpRequest(method=method, path=f"/v1/projects/{path}"), NOW)
    return answer.status, answer.json()


@pytest.fixture
def core() -> ContainerCore:
    """A project with three clusters, two of one name."""
    return ContainerCore(
        project="p",
        clusters=[a_cluster(), a_cluster("twin", "us-east1-b"), a_cluster("twin", "us-central1-a")],
    )


def test_a_cluster_says_how_it_is_reached_and_what_it_is(core) -> None:
    status, cluster = ask(core, "p/locations/us-central1/clusters/standing")

    assert status == 200
    assert {name: cluster[name] for name in ("name", "location", "status", "endpoint", "createTime")} == {
        "name": "standing",
        "location": "us-central1",
        "status": "RUNNING",
        "endpoint": "127.0.0.1:1443",
        "createTime": "2026-01-01T00:00:00+00:00",
    }
    assert base64.b64decode(cluster["masterAuth"]["clusterCaCertificate"]) == b"PEM"
    dns = cluster["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]
    assert dns == {"endpoint": "localhost:2443", "allowExternalTraffic": True}
    assert cluster["currentMasterVersion"].startswith("1.34.")
    assert cluster["nodePools"][0]["config"]["machineType"] == "n2-standard-8"
    assert cluster["autopilot"] == {}
    assert cluster["selfLink"].endswith("/projects/p/locations/us-central1/clusters/standing")


@pytest.mark.parametrize(
    ("changes", "absent"),
    [
        pytest.param(
            {"dns_open": False},
            ("controlPlaneEndpointsConfig", "dnsEndpointConfig", "allowExternalTraffic"),
            id="dns-closed",
        ),
        pytest.param({"authority": ""}, ("masterAuth", "clusterCaCertificate"), id="no-authority"),
        pytest.param({"endpoint": ""}, ("endpoint",), id="no-address"),
        pytest.param({"endpoint": "", "dns_endpoint": ""}, ("masterAuth",), id="not-reached-at-all"),
    ],
)
def test_what_a_cluster_does_not_have_is_left_out(changes, absent) -> None:
    core = ContainerCore(project="p", clusters=[a_cluster(**changes)])

    _, found = ask(core, "p/locations/us-central1/clusters/standing")

    for step in absent[:-1]:
        found = found[step]
    assert absent[-1] not in found


def test_node_pools_show_their_machines() -> None:
    taint = {"key": "pool", "value": "gpu", "effect": "NoSchedule"}
    pool = NodePool(
        name="l4",
        machine_type="g2-standard-8",
        nodes=0,
        most=4,
        accelerator="nvidia-l4",
        accelerator_count=1,
        spot=True,
        taints=(taint,),
    )
    core = ContainerCore(
        project="p", clusters=[a_cluster(pools=(pool,), autopilot=True, status=Status.STOPPING)]
    )

    _, cluster = ask(core, "p/locations/us-central1/clusters/standing")

    (shown,) = cluster["nodePools"]
    assert shown["autoscaling"] == {"enabled": True, "minNodeCount": 0, "maxNodeCount": 4}
    assert shown["config"]["accelerators"] == [{"acceleratorCount": "1", "acceleratorType": "nvidia-l4"}]
    assert shown["config"]["taints"] == [{"key": "pool", "value": "gpu", "effect": "NO_SCHEDULE"}]
    assert shown["config"]["spot"] is True
    assert (cluster["autopilot"], cluster["status"]) == ({"enabled": True}, "STOPPING")


@pytest.mark.parametrize(
    ("path", "method", "code", "word"),
    [
        ("p/locations/us-central1/clusters/nobody", "GET", 404, "NOT_FOUND"),
        ("p/locations/us-east1/clusters/standing", "GET", 404, "NOT_FOUND"),
        ("other/locations/us-central1/clusters/standing", "GET", 403, "PERMISSION_DENIED"),
        ("other/locations/-/clusters", "GET", 403, "PERMISSION_DENIED"),
        ("p/locations/us-central1/clusters", "POST", 404, "NOT_FOUND"),
        ("p/locations/us-central1/operations/o", "GET", 404, "NOT_FOUND"),
    ],
)
def test_what_is_not_there_is_refused(core, path, method, code, word) -> None:
    status, answer = ask(core, path, method)

    assert (status, answer["error"]["code"], answer["error"]["status"]) == (code, code, word)


@pytest.mark.parametrize(
    ("location", "found"),
    [
        ("-", [("us-central1", "standing"), ("us-central1-a", "twin"), ("us-east1-b", "twin")]),
        ("us-central1", [("us-central1", "standing")]),
        ("us-east1-b", [("us-east1-b", "twin")]),
    ],
)
def test_clusters_are_listed_by_place_or_all(core, location, found) -> None:
    _, listed = ask(core, f"p/locations/{location}/clusters")

    assert [(one["location"], one["name"]) for one in listed["clusters"]] == found
    assert "missingZones" not in listed


def test_a_place_without_clusters_lists_nothing(core) -> None:
    assert ask(core, "p/locations/us-west1/clusters") == (200, {})


def test_a_list_says_which_places_are_missing_from_it(core) -> None:
    core.silence(["us-east1-b"])

    _, listed = ask(core, "p/locations/-/clusters")

    assert listed["missingZones"] == ["us-east1-b"]
    assert [one["location"] for one in listed["clusters"]] == ["us-central1", "us-central1-a"]
    assert len(ask(core, "p/locations/us-east1-b/clusters")[1]["clusters"]) == 1


def test_clusters_come_and_go(core) -> None:
    core.put(a_cluster(status=Status.ERROR))
    assert ask(core, "p/locations/us-central1/clusters/standing")[1]["status"] == "ERROR"

    core.remove("us-central1", "standing")
    core.remove("us-central1", "nobody")
    assert ask(core, "p/locations/us-central1/clusters/standing")[0] == 404
    assert [cluster.name for cluster in core.clusters()] == ["twin", "twin"]


def test_calls_are_counted_and_faults_answer_instead() -> None:
    busy = google_error(429, "rateLimitExceeded", "busy", word="RESOURCE_EXHAUSTED")
    core = ContainerCore(
        project="p",
        clusters=[a_cluster()],
        faults=lambda method, _request: Fault(answer=busy) if method == LIST else None,
    )

    assert ask(core, "p/locations/-/clusters")[0] == 429
    assert ask(core, "p/locations/us-central1/clusters/standing")[0] == 200
    assert core.counts() == {LIST: 1, GET: 1}

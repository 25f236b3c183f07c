"""Clusters: the body of one made for a job, how one that stands is found, and what answers and names say of it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from runtender.model import ResourceKind
from runtender.observed import ClusterFacts
from runtender.ports import ApiAnswer
from runtender.runtimes.cluster import (
    Ambiguity,
    Endpoint,
    JobPlace,
    choose_cluster,
    create_body,
    endpoint_of,
    get_cluster,
    job_name,
    list_clusters,
    log_blocks,
    parse_job_name,
    read_cluster,
    read_clusters,
    read_version,
    region_of,
    version_of,
)

ON_L4 = {"models": ("tide", "tsmixer"), "use_gpu": True, "gpu_type": "L4", "workers": 2}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


@cache
def schemas():
    package = pytest.importorskip("googleapiclient")
    path = Path(package.__path__[0], "discovery_cache", "documents", "container.v1.json")
    return json.loads(path.read_text(encoding="utf-8"))["schemas"]


def faults(value, schema, path="cluster"):
    """Every wrong name, type and word in a body, by its path; what only the server writes counts as wrong."""
    schema = schemas()[schema["$ref"]] if "$ref" in schema else schema
    kind = schema.get("type")
    if kind in TYPES and not isinstance(value, TYPES[kind]):
        return [f"{path}: {value!r} is no {kind}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{path}: {value!r} is none of its words"]
    if schema.get("deprecated") or schema.get("readOnly"):
        return [f"{path}: not to be sent"]
    if isinstance(value, list):
        return [fault for item in value for fault in faults(item, schema["items"], f"{path}[]")]
    found: list[str] = []
    for name, item in value.items() if isinstance(value, dict) else ():
        inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        where = f"{path}.{name}"
        found += [f"{where}: unknown"] if inner is None else faults(item, inner, where)
    return found


@pytest.fixture
def body_of(on_kubernetes):
    def build(**asked):
        bearing = on_kubernetes(**asked)
        row = replace(bearing.row, kind=ResourceKind.CLUSTER, name=bearing.kubernetes.cluster_name)
        return create_body(bearing.job, row, bearing.settings)["cluster"]

    return build


@pytest.mark.parametrize(
    "most", [pytest.param(2, id="acceptance-D10 (the plane's own): a pool that grows from none")]
)
def test_a_job_without_a_cluster_gets_one_of_its_own(on_kubernetes, body_of, most):
    assert on_kubernetes(**ON_L4).kubernetes.ephemeral
    system, workers = body_of(**ON_L4)["nodePools"]
    assert workers["config"]["accelerators"][0]["acceleratorType"] == "nvidia-l4"
    assert (workers["initialNodeCount"], workers["autoscaling"]["maxNodeCount"]) == (0, most)
    assert (system["initialNodeCount"], "accelerators" in system["config"]) == (1, False)


@pytest.mark.parametrize("count", [pytest.param("1", id="acceptance-D11")])
def test_the_count_of_gpus_is_a_text_and_their_driver_the_default(body_of, count):
    (accelerator,) = body_of(**ON_L4)["nodePools"][1]["config"]["accelerators"]
    assert accelerator["acceleratorCount"] == count
    assert accelerator["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "DEFAULT"}


def test_a_cpu_cluster_has_one_pool_that_also_carries_the_clusters_own_pods(body_of):
    (pool,) = body_of(workers=3, models=("theta", "autoets"))["nodePools"]
    assert (pool["initialNodeCount"], pool["autoscaling"]["maxNodeCount"]) == (3, 3)


def test_no_node_outlives_what_the_job_may_take(body_of):
    assert {pool["config"]["maxRunDuration"] for pool in body_of(**ON_L4)["nodePools"]} == {"91500s"}


def test_a_cluster_is_private_small_in_addresses_and_known_as_the_jobs(on_kubernetes, body_of):
    body = body_of()
    assert body["networkConfig"] == {"defaultEnablePrivateNodes": True}
    assert body["ipAllocationPolicy"]["clusterIpv4CidrBlock"] == "/20"
    assert body["resourceLabels"]["sf-kind"] == "cluster"
    assert body["resourceLabels"]["sf-nonce"] == on_kubernetes().row.nonce
    assert body["subnetwork"] == "projects/p/regions/us-central1/subnetworks/workers"


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(ON_L4, id="GPU"),
        pytest.param({"workers": 3}, id="CPU"),
        pytest.param({"gke_mode": "ray"}, id="Ray"),
        pytest.param({"overrides": {"statistical": {"spot": True}}}, id="Spot"),
        pytest.param({"overrides": {"statistical": {"machine_type": "n4-standard-8"}}}, id="hyperdisk"),
    ],
)
def test_the_body_is_what_the_api_describes(body_of, asked):
    assert faults(body_of(**asked), {"$ref": "Cluster"}) == []


def test_two_families_of_a_long_run_name_get_two_clusters(on_kubernetes):
    names = {on_kubernetes(models=(model,)).kubernetes.cluster_name for model in ("theta", "xgboost")}
    assert len(names) == 2


@pytest.mark.parametrize(
    ("name", "place"),
    [
        pytest.param(
            "projects/p/locations/us-central1-a/clusters/sf-standing-gke/namespaces/default/jobs/sf-job-ok",
            JobPlace(
                location="us-central1-a", cluster="sf-standing-gke", namespace="default", job="sf-job-ok"
            ),
            id="acceptance-D22",
        ),
        pytest.param("projects/p/zones/z/instances/i", None, id="another resource"),
        pytest.param("projects/p/locations/l/clusters//namespaces/n/jobs/j", None, id="a missing part"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_jobs_resource_name_is_read_back(name, place):
    assert parse_job_name(name) == place
    assert place is None or job_name("p", place) == name


@pytest.mark.parametrize(
    ("location", "region"),
    [
        pytest.param("us-central1-a", "us-central1", id="acceptance-D28 zone"),
        pytest.param("us-central1", "us-central1", id="acceptance-D28 region"),
    ],
)
def test_a_location_is_in_a_region(location, region):
    assert region_of(location) == region


def test_pods_logs_are_cut_one_by_one_and_silent_pods_left_out():
    long = "x" * 2000
    assert (
        log_blocks([("a", long), ("b", ""), ("c", "end")])
        == f"--- pod a ---\n{'x' * 1500}\n--- pod c ---\nend"
    )


@pytest.mark.parametrize("blocks", [pytest.param(2, id="acceptance-D27")])
def test_each_pod_has_its_block(blocks):
    text = log_blocks([("a", "1"), ("b", "2"), ("c", "")])
    assert text.count("--- pod ") == blocks


def test_the_text_of_many_pods_is_bounded():
    assert log_blocks([(str(number), "x") for number in range(25)]).endswith("--- 5 more pods ---")


CLUSTER = {
    "endpoint": "34.1.2.3",
    "masterAuth": {"clusterCaCertificate": "Y2E="},
    "controlPlaneEndpointsConfig": {
        "dnsEndpointConfig": {"endpoint": "gke-1.example", "allowExternalTraffic": True}
    },
}
INSIDE_ONLY = {**CLUSTER, "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "gke-1.example"}}}


@pytest.mark.parametrize(
    ("cluster", "endpoint"),
    [
        pytest.param(CLUSTER, Endpoint(host="gke-1.example", is_name=True), id="acceptance-D29 DNS"),
        pytest.param(
            INSIDE_ONLY, Endpoint(host="34.1.2.3", ca_certificate="Y2E="), id="acceptance-D29 address"
        ),
        pytest.param({"endpoint": "34.1.2.3"}, Endpoint(host="34.1.2.3"), id="no authority"),
        pytest.param({}, None, id="not there yet"),
    ],
)
def test_a_cluster_is_reached_by_name_where_that_is_allowed(cluster, endpoint):
    assert endpoint_of(cluster) == endpoint


def shown(location="us-central1", **changes):
    """A cluster as the GKE API shows it."""
    return {
        "name": "my-gke",
        "location": location,
        "selfLink": f"https://container.googleapis.com/v1/projects/p/locations/{location}/clusters/my-gke",
        "status": "RUNNING",
        "currentMasterVersion": "1.33.5-gke.1080000",
        "nodePools": [{"config": {"machineType": name}} for name in ("e2-standard-2", "n2-standard-8")],
        **CLUSTER,
        **changes,
    }


def test_a_cluster_is_read_as_far_as_a_plan_needs_it():
    assert read_cluster(shown()) == ClusterFacts(
        name="my-gke",
        full_name="projects/p/locations/us-central1/clusters/my-gke",
        location="us-central1",
        status="RUNNING",
        has_endpoint=True,
        server_minor=33,
        machine_types=("e2-standard-2", "n2-standard-8"),
    )


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        pytest.param({"autopilot": {"enabled": True}, "nodePools": []}, {"autopilot": True, "machine_types": ()},
                     id="an Autopilot"),
        pytest.param({"currentMasterVersion": "2.0"}, {"server_minor": 0}, id="a version of another kind"),
        pytest.param({"currentMasterVersion": None}, {"server_minor": 0}, id="no version"),
        pytest.param(
            {"endpoint": "", "controlPlaneEndpointsConfig": {}}, {"has_endpoint": False}, id="no endpoint yet"
        ),
        pytest.param(
            {"selfLink": "https://container.googleapis.com/v1/projects/p/zones/us-central1-a/clusters/my-gke",
             "location": "us-central1-a"},
            {"location": "us-central1-a", "full_name": "projects/p/locations/us-central1-a/clusters/my-gke"},
            id="zonal",
        ),
        pytest.param({"nodePools": [{}, {"config": {"machineType": "n2-standard-8"}}] * 2},
                     {"machine_types": ("n2-standard-8",)}, id="each machine type once"),
    ],
)  # fmt: skip
def test_what_a_cluster_leaves_out_is_not_guessed(changes, facts):
    assert read_cluster(shown(**changes)) == replace(read_cluster(shown()), **facts)


def test_a_cluster_is_asked_for_where_it_is_said_to_be_and_else_in_the_whole_project():
    look, all_of_them, version = (
        get_cluster("p", "us-central1", "my-gke"),
        list_clusters("p"),
        version_of("projects/p/locations/us-central1/clusters/my-gke"),
    )
    assert (look.verb, look.path) == ("GET", "/projects/p/locations/us-central1/clusters/my-gke")
    assert (all_of_them.verb, all_of_them.path) == ("GET", "/projects/p/locations/-/clusters")
    assert (version.path, version.cluster) == ("/version", "projects/p/locations/us-central1/clusters/my-gke")


def test_one_cluster_of_a_name_is_the_one_wherever_it_is():
    listed = [read_cluster(shown("us-east1", name="other")), read_cluster(shown("us-east1-b"))]
    assert choose_cluster("my-gke", listed) == listed[1]
    assert choose_cluster("nobody", listed) is None


def test_a_name_that_several_clusters_have_is_refused_with_their_places():
    chosen = choose_cluster("my-gke", [read_cluster(shown("us-east1")), read_cluster(shown("europe-west1"))])
    assert chosen == Ambiguity(name="my-gke", places=("europe-west1", "us-east1"))
    assert str(chosen) == "there are 2 clusters 'my-gke': in europe-west1, us-east1"


@pytest.mark.parametrize(
    ("answer", "locations"),
    [
        pytest.param(ApiAnswer(status=200, body={"clusters": [shown()]}), ["us-central1"], id="one"),
        pytest.param(ApiAnswer(status=200, body={}), [], id="none"),
        pytest.param(
            ApiAnswer(status=200, body={"clusters": [shown()], "missingZones": ["us-east1-b"]}),
            None,
            id="a place did not answer",
        ),
        pytest.param(ApiAnswer(status=503), None, id="not read"),
    ],
)
def test_a_list_that_leaves_out_a_place_says_nothing(answer, locations):
    found = read_clusters(answer)
    assert (None if found is None else [cluster.location for cluster in found]) == locations


@pytest.mark.parametrize(
    ("answer", "minor"),
    [
        pytest.param(ApiAnswer(status=200, body={"major": "1", "minor": "33"}), 33, id="plain"),
        pytest.param(ApiAnswer(status=200, body={"major": "1", "minor": "27+"}), 27, id="patched"),
        pytest.param(ApiAnswer(status=200, body={}), None, id="not told"),
        pytest.param(ApiAnswer(status=0, text="TimeoutError"), None, id="not read"),
    ],
)
def test_a_server_tells_its_version(answer, minor):
    assert read_version(answer) == minor

"""Ray on Kubernetes: the objects of a cluster with our own nodes, and the same as a RayCluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest

from runtender.runtimes import gke_ray

RAY = {"gke_mode": "ray", "gke_cluster_name": "my-gke"}
RAY_CLUSTER_SCHEMA = json.loads(Path(__file__).with_name("raycluster.json").read_text(encoding="utf-8"))


@pytest.fixture
def with_workers(on_kubernetes):
    return lambda workers: on_kubernetes(overrides={"statistical": {"workers": workers}}, **RAY)


def bodies_of(bearing) -> dict[str, Any]:
    return {**gke_ray.bodies(bearing)}


def env_of(body):
    (container,) = body["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each.get("value") for each in container["env"]}


@pytest.mark.parametrize("nodes", [pytest.param(1, id="acceptance-D7")])
def test_two_workers_are_a_head_and_a_node(with_workers, nodes):
    bodies = bodies_of(with_workers(2))
    assert bodies["head_service"] is not None
    assert bodies["worker_deployment"]["spec"]["replicas"] == nodes
    cluster = bodies["kuberay_cluster"]
    assert cluster["apiVersion"] == "ray.io/v1"
    assert cluster["spec"]["workerGroupSpecs"][0]["replicas"] == nodes


@pytest.mark.parametrize("workers", [pytest.param(1, id="acceptance-D8")])
def test_a_head_alone_needs_nobody_to_find_it(with_workers, workers):
    bodies = bodies_of(with_workers(workers))
    assert (bodies["head_service"], bodies["worker_deployment"]) == (None, None)


@pytest.mark.parametrize("expected", [pytest.param("4", id="acceptance-D9")])
def test_the_driver_knows_how_many_to_wait_for_and_the_nodes_whom_to_join(with_workers, expected):
    bearing = with_workers(4)
    bodies = bodies_of(bearing)
    assert env_of(bodies["job"])["SF_RAY_EXPECTED_NODES"] == expected
    assert bodies["worker_deployment"]["spec"]["replicas"] == 3
    assert env_of(bodies["worker_deployment"])["SF_RAY_HEAD_ADDRESS"] == f"{bearing.name}-head:6379"


def test_what_belongs_to_a_job_goes_with_it(with_workers):
    bearing = with_workers(2)
    bodies: list[Any] = [
        gke_ray.head_service(bearing, owner_uid="u-1"),
        gke_ray.worker_deployment(bearing, owner_uid="u-1"),
    ]
    for body in bodies:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": bearing.name, "uid": "u-1"}
        assert body["metadata"]["ownerReferences"] == [owner]


def test_the_service_finds_the_head_and_the_deployment_its_own_pods(with_workers):
    bodies = bodies_of(with_workers(3))
    head = bodies["job"]["spec"]["template"]["metadata"]["labels"]
    assert bodies["head_service"]["spec"]["selector"].items() <= head.items()
    node = bodies["worker_deployment"]["spec"]["template"]["metadata"]["labels"]
    assert bodies["worker_deployment"]["spec"]["selector"]["matchLabels"].items() <= node.items()
    assert not bodies["head_service"]["spec"]["selector"].items() <= node.items()


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_object_is_valid(with_workers, workers):
    bodies = bodies_of(with_workers(workers))
    for name in ("job", "head_service", "worker_deployment"):
        if bodies[name] is not None:
            kubernetes_validate.validate(json.loads(json.dumps(bodies[name])), "1.34", strict=True)
    jsonschema.Draft202012Validator(RAY_CLUSTER_SCHEMA).validate(bodies["kuberay_cluster"])


def test_the_pods_of_a_ray_cluster_are_valid_pods(with_workers):
    spec = gke_ray.ray_cluster(with_workers(2))["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = {"apiVersion": "v1", "kind": "Pod", **json.loads(json.dumps(group["template"]))}
        pod["metadata"]["name"] = "a-pod"
        kubernetes_validate.validate(pod, "1.34", strict=True)


def test_a_ray_clusters_name_keeps_what_tells_jobs_apart(on_kubernetes):
    name = gke_ray.ray_cluster(on_kubernetes(**RAY))["metadata"]["name"]
    assert len(name) <= 53

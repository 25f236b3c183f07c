"""Deployments, quotas and service accounts."""

from __future__ import annotations

import pytest

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
MERGE = {"Content-Type": "application/merge-patch+json"}


def a_deployment(image: str = "registry/worker:1", **spec):
    container = {"name": "worker", "image": image, "command": ["serve"]}
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container]}}
    whole = {"replicas": 2, "selector": {"matchLabels": {"app": "d"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": whole}


@pytest.fixture
def deployed(cluster):
    """A cluster with a Deployment of two pods, both up."""
    assert cluster.call("POST", DEPLOYMENTS, a_deployment())[0] == 201
    cluster.wait(10)
    return cluster


def status(cluster):
    return cluster.call("GET", f"{DEPLOYMENTS}/d")[1]["status"]


def test_a_deployment_keeps_its_pods(deployed) -> None:
    found = status(deployed)
    assert (found["replicas"], found["readyReplicas"], found["observedGeneration"]) == (2, 2, 1)
    assert {one["type"]: one["status"] for one in found["conditions"]} == {
        "Available": "True",
        "Progressing": "True",
    }

    name = deployed.pods()[0]["metadata"]["name"]
    deployed.call("DELETE", f"{PODS}/{name}")
    deployed.wait(15)

    assert len(deployed.pods()) == 2
    assert name not in [pod["metadata"]["name"] for pod in deployed.pods()]


def test_a_deployment_grows_and_shrinks(deployed) -> None:
    for wanted in (3, 1):
        deployed.call("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"replicas": wanted}}, headers=MERGE)
        deployed.wait(15)
        assert (len(deployed.pods()), status(deployed)["readyReplicas"]) == (wanted, wanted)


def test_a_new_template_replaces_the_pods(deployed) -> None:
    changed = a_deployment("registry/worker:2")["spec"]["template"]
    deployed.call("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"template": changed}}, headers=MERGE)
    deployed.wait(15)

    assert {pod["spec"]["containers"][0]["image"] for pod in deployed.pods()} == {"registry/worker:2"}
    assert status(deployed)["updatedReplicas"] == 2


def test_a_container_that_ends_is_started_again_in_its_pod(deployed) -> None:
    first = deployed.started()[0]
    deployed.core.pod_exited(first.uid, 0, deployed.now)
    assert status(deployed)["readyReplicas"] == 1

    deployed.wait(15)

    assert deployed.started()[-1].restart == 1
    assert status(deployed)["readyReplicas"] == 2


def test_a_deployment_takes_its_pods_along(deployed) -> None:
    deployed.call("DELETE", f"{DEPLOYMENTS}/d")
    deployed.wait(5)

    assert deployed.pods() == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"selector": {"matchLabels": {"app": "other"}}}, "spec.template.metadata.labels"),
        ({"selector": {}}, "spec.selector"),
    ],
)
def test_a_deployment_has_to_know_its_pods(cluster, spec, field) -> None:
    code, answer = cluster.call("POST", DEPLOYMENTS, a_deployment(**spec))

    assert (code, answer["details"]["causes"][0]["field"]) == (422, field)


def test_a_job_waits_for_room_in_its_quota(make_cluster, job) -> None:
    cluster = make_cluster(ending=lambda _started: 0, takes=30)
    cluster.call(
        "POST", QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1", "requests.cpu": "6"}}}
    )
    cluster.create_job(job())
    cluster.wait(10)

    assert cluster.job()["status"]["active"] == 1
    _, events = cluster.call("GET", "/api/v1/namespaces/default/events", fieldSelector="reason=FailedCreate")
    about = {event["involvedObject"]["name"] for event in events["items"]}
    words = {event["message"].partition("forbidden: ")[2] for event in events["items"]}
    over = "pods=1,requests.cpu={}"
    limited = "limited: pods=1,requests.cpu=6"
    used = f"requested: {over.format(4)}, used: {over.format(4)}, {limited}"
    assert (about, words) == ({"j"}, {f"exceeded quota: q, {used}"})
    assert cluster.call("GET", f"{QUOTAS}/q")[1]["status"]["used"] == {"pods": "1", "requests.cpu": "4"}

    cluster.wait(120)
    assert "Complete" in cluster.conditions(cluster.job())


def test_a_pod_beyond_the_quota_is_refused(cluster, pod) -> None:
    cluster.call("POST", QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})

    code, answer = cluster.call("POST", PODS, pod())

    assert (code, answer["reason"]) == (403, "Forbidden")
    assert (
        answer["message"]
        == 'pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0'
    )


def test_a_quota_counts_jobs(cluster, job) -> None:
    cluster.call("POST", QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"count/jobs.batch": "1"}}})
    cluster.create_job(job("a"))

    code, answer = cluster.call("POST", "/apis/batch/v1/namespaces/default/jobs", job("b"))

    assert (code, answer["reason"]) == (403, "Forbidden")


def test_a_service_account_has_to_be_there(cluster, job) -> None:
    cluster.create_job(job(pod={"serviceAccountName": "worker"}))
    cluster.wait(5)
    assert cluster.pods() == []
    assert cluster.reasons("j") == ["FailedCreate"]

    cluster.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "worker"}})
    cluster.wait(20)

    assert [one.service_account for one in cluster.started()] == ["worker", "worker"]


def test_what_happens_again_is_counted_on_its_event(cluster, pod) -> None:
    cluster.core.miss_image("registry/worker:1")
    cluster.create_pod(pod())
    cluster.wait(120)

    _, events = cluster.call("GET", "/api/v1/namespaces/default/events", fieldSelector="reason=BackOff")
    (event,) = events["items"]
    assert event["count"] > 1
    assert event["firstTimestamp"] < event["lastTimestamp"]


def test_events_are_forgotten_after_their_time(cluster, pod) -> None:
    cluster.create_pod(pod())
    cluster.wait(10)
    assert cluster.reasons("p")

    cluster.wait(3600, step=60)

    assert cluster.reasons("p") == []


def test_every_namespace_has_an_account_and_a_service_gets_an_address(cluster) -> None:
    cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    assert cluster.call("GET", "/api/v1/namespaces/other/serviceaccounts/default")[0] == 200

    body = {
        "metadata": {"name": "head"},
        "spec": {"clusterIP": "None", "ports": [{"name": "gcs", "port": 6379}]},
    }
    code, service = cluster.call("POST", "/api/v1/namespaces/default/services", body)
    assert code == 201
    assert service["spec"]["ports"][0] == {"name": "gcs", "port": 6379, "protocol": "TCP", "targetPort": 6379}

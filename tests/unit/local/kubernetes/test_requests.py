"""Requests and answers: what an API server takes, refuses and says, whoever asks."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from runtender.local.http import DROPPED, Fault, HttpRequest
from runtender.local.kubernetes.errors import failure

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}


@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        ("GET", f"{JOBS}/nobody", 404, "NotFound"),
        ("DELETE", f"{JOBS}/nobody", 404, "NotFound"),
        ("GET", f"{PODS}/nobody/log", 404, "NotFound"),
        ("GET", "/apis/batch/v1/namespaces/default/cronjobs", 404, "NotFound"),
        ("GET", "/apis/batch/v2/namespaces/default/jobs", 404, "NotFound"),
        ("GET", "/api/v1/namespaces/default/jobs", 404, "NotFound"),
        ("GET", "/nowhere", 404, "NotFound"),
        ("GET", "/apis/nobody", 404, "NotFound"),
        ("GET", "/openapi/v2", 404, "NotFound"),
        ("PUT", JOBS, 405, "MethodNotAllowed"),
        ("POST", f"{JOBS}/j", 405, "MethodNotAllowed"),
        ("POST", "/version", 405, "MethodNotAllowed"),
        ("PUT", f"{PODS}/p/log", 405, "MethodNotAllowed"),
    ],
)
def test_what_is_not_there_is_refused(cluster, method, path, code, reason) -> None:
    status, answer = cluster.call(method, path)

    assert (status, answer["kind"], answer["status"], answer["reason"], answer["code"]) == (
        code,
        "Status",
        "Failure",
        reason,
        code,
    )


def test_a_refusal_names_what_was_meant(cluster) -> None:
    _, answer = cluster.call("GET", f"{JOBS}/nobody")

    assert answer["message"] == 'jobs.batch "nobody" not found'
    assert answer["details"] == {"name": "nobody", "group": "batch", "kind": "jobs"}


def test_a_namespace_has_to_be_there(cluster, job) -> None:
    status, answer = cluster.call("POST", "/apis/batch/v1/namespaces/other/jobs", job())

    assert (status, answer["message"]) == (404, 'namespaces "other" not found')


def test_a_name_is_taken_once(cluster, job) -> None:
    cluster.create_job(job())

    status, answer = cluster.call("POST", JOBS, job())

    assert (status, answer["reason"], answer["message"]) == (
        409,
        "AlreadyExists",
        'jobs.batch "j" already exists',
    )


def test_a_server_completes_what_it_takes(cluster, job) -> None:
    created = cluster.create_job(job())

    metadata, spec = created["metadata"], created["spec"]
    assert {"uid", "resourceVersion", "creationTimestamp", "generation"} <= set(metadata)
    assert metadata["namespace"] == "default"
    assert (spec["backoffLimit"], spec["suspend"], spec["podReplacementPolicy"]) == (
        6,
        False,
        "TerminatingOrFailed",
    )
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": metadata["uid"]}}
    labels = spec["template"]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "j"
    pod = spec["template"]["spec"]
    assert (pod["terminationGracePeriodSeconds"], pod["dnsPolicy"]) == (30, "ClusterFirst")
    assert pod["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def test_a_name_can_be_left_to_the_server(cluster, job) -> None:
    body = job()
    body["metadata"] = {"generateName": "try-"}

    name = cluster.create_job(body)["metadata"]["name"]

    assert name.startswith("try-")
    assert len(name) == len("try-") + 5


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"kind": "Pod"}, "the kind in the data (Pod) does not match"),
        ({"apiVersion": "batch/v1beta1"}, "the API version in the data (batch/v1beta1) does not match"),
        (
            {"metadata": {"name": "j", "namespace": "other"}},
            "the namespace of the provided object does not match",
        ),
        ({"metadata": {"name": "j", "resourceVersion": "1"}}, "resourceVersion should not be set"),
    ],
)
def test_a_body_has_to_be_what_its_path_says(cluster, job, body, words) -> None:
    status, answer = cluster.call("POST", JOBS, {**job(), **body})

    assert (status, answer["reason"]) == (400, "BadRequest")
    assert words in answer["message"]


def test_what_is_no_json_is_refused(cluster) -> None:
    request = HttpRequest(method="POST", path=JOBS, body=b"{")

    assert cluster.core.handle(request, cluster.now).status == 400


@pytest.mark.parametrize(
    ("method", "path", "content_type"),
    [
        ("POST", JOBS, "application/vnd.kubernetes.protobuf"),
        ("PATCH", f"{JOBS}/j", "application/json"),
        ("PATCH", f"{JOBS}/j", "application/apply-patch+yaml"),
    ],
)
def test_formats_that_are_not_taken_are_said_so(cluster, job, method, path, content_type) -> None:
    cluster.create_job(job())

    status, answer = cluster.call(method, path, {}, headers={"Content-Type": content_type})

    assert (status, answer["reason"]) == (415, "UnsupportedMediaType")


def test_a_dry_run_changes_nothing(cluster, job) -> None:
    created = cluster.create_job(job(), dryRun="All")
    assert created["spec"]["backoffLimit"] == 6
    assert cluster.call("GET", f"{JOBS}/j")[0] == 404

    cluster.create_job(job())
    assert cluster.call("DELETE", f"{JOBS}/j", dryRun="All")[0] == 200
    assert (
        cluster.call("PATCH", f"{JOBS}/j", {"spec": {"parallelism": 1}}, headers=MERGE, dryRun="All")[0]
        == 200
    )
    assert cluster.job()["spec"]["parallelism"] == 2


def test_a_change_of_an_older_version_is_refused(cluster, job) -> None:
    old = cluster.create_job(job())
    cluster.wait(10)

    status, answer = cluster.call("PUT", f"{JOBS}/j", old)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert "please apply your changes to the latest version" in answer["message"]

    fresh = cluster.job()
    fresh["metadata"]["labels"] = {"a": "b"}
    assert cluster.call("PUT", f"{JOBS}/j", fresh)[0] == 200
    assert cluster.job()["metadata"]["labels"] == {"a": "b"}


def test_what_is_the_servers_own_cannot_be_changed(cluster, job) -> None:
    before = cluster.create_job(job())
    change = {"metadata": {"creationTimestamp": "2000-01-01T00:00:00Z"}, "status": {"succeeded": 9}}

    cluster.call("PATCH", f"{JOBS}/j", change, headers=MERGE)

    after = cluster.job()
    assert after["metadata"]["creationTimestamp"] == before["metadata"]["creationTimestamp"]
    assert "succeeded" not in after["status"]


def test_the_status_has_a_path_of_its_own(cluster, job) -> None:
    cluster.create_job(job(suspend=True))

    change = {"status": {"conditions": [{"type": "X", "status": "True"}]}, "spec": {"parallelism": 1}}
    cluster.call("PATCH", f"{JOBS}/j/status", change, headers=MERGE)

    after = cluster.job()
    assert "X" in cluster.conditions(after)
    assert after["spec"]["parallelism"] == 2


def test_a_generation_counts_changes_of_the_spec_alone(cluster, job) -> None:
    assert cluster.create_job(job())["metadata"]["generation"] == 1
    cluster.call("PATCH", f"{JOBS}/j", {"metadata": {"labels": {"a": "b"}}}, headers=MERGE)
    assert cluster.job()["metadata"]["generation"] == 1
    cluster.call("PATCH", f"{JOBS}/j", {"spec": {"parallelism": 1}}, headers=MERGE)
    assert cluster.job()["metadata"]["generation"] == 2


def test_a_change_without_a_difference_keeps_the_version(cluster, job) -> None:
    cluster.create_job(job())
    before = cluster.job()

    cluster.call("PATCH", f"{JOBS}/j", {"spec": {"parallelism": 2}}, headers=MERGE)

    assert cluster.job() == before


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"completions": 5}, "spec.completions"),
        ({"completionMode": "NonIndexed"}, "spec.completionMode"),
        ({"backoffLimitPerIndex": 3}, "spec.backoffLimitPerIndex"),
        ({"selector": {"matchLabels": {"a": "b"}}}, "spec.selector"),
        ({"template": {"spec": {"restartPolicy": "OnFailure"}}}, "spec.template"),
    ],
)
def test_what_a_job_is_cannot_be_changed(cluster, job, change, field) -> None:
    cluster.create_job(job())

    status, answer = cluster.call("PATCH", f"{JOBS}/j", {"spec": change}, headers=MERGE)

    assert (status, answer["reason"]) == (422, "Invalid")
    assert answer["details"]["causes"][0]["field"] == field
    assert "field is immutable" in answer["message"]


def test_an_indexed_job_may_grow_as_a_whole(cluster, job) -> None:
    cluster.create_job(job())

    assert (
        cluster.call("PATCH", f"{JOBS}/j", {"spec": {"completions": 3, "parallelism": 3}}, headers=MERGE)[0]
        == 200
    )


def test_a_pod_that_is_there_is_hardly_changed(cluster, pod) -> None:
    cluster.create_pod(pod())

    change = {"spec": {"containers": [{"name": "worker", "command": ["other"]}]}}
    status, answer = cluster.call("PATCH", f"{PODS}/p", change, headers=STRATEGIC)
    assert (status, answer["details"]["causes"][0]["reason"]) == (422, "FieldValueForbidden")

    assert (
        cluster.call("PATCH", f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 5}}, headers=STRATEGIC)[0]
        == 200
    )


def test_a_wrong_change_is_refused_like_a_wrong_object(cluster, job) -> None:
    cluster.create_job(job())

    status, answer = cluster.call("PATCH", f"{JOBS}/j", {"spec": {"parallelism": -1}}, headers=MERGE)

    assert (status, answer["details"]["causes"][0]["field"]) == (422, "spec.parallelism")


def test_calls_are_counted_by_method(cluster, job) -> None:
    cluster.create_job(job())
    for path in (f"{JOBS}/j", JOBS, PODS, f"{PODS}/x/log", "/version", "/apis", "/api/v1/events"):
        cluster.call("GET", path)
    cluster.call("DELETE", PODS, labelSelector="a=b")
    cluster.call("DELETE", f"{JOBS}/j")
    cluster.core.apply(HttpRequest(method="GET", path=JOBS), cluster.now)

    assert cluster.core.counts() == {
        "kubernetes.jobs.create": 1,
        "kubernetes.jobs.get": 1,
        "kubernetes.jobs.list": 1,
        "kubernetes.pods.list": 1,
        "kubernetes.pods.log.get": 1,
        "kubernetes.version.get": 1,
        "kubernetes.discovery.get": 1,
        "kubernetes.events.list": 1,
        "kubernetes.pods.deletecollection": 1,
        "kubernetes.jobs.delete": 1,
    }


@pytest.mark.parametrize("applied", [False, True])
def test_a_fault_answers_instead_and_may_let_the_call_happen(make_cluster, job, applied) -> None:
    hits = [Fault(answer=DROPPED, applied=applied)]
    cluster = make_cluster(
        faults=lambda method, _request: hits.pop() if hits and method == "kubernetes.jobs.create" else None
    )
    request = HttpRequest(method="POST", path=JOBS, body=json.dumps(job()).encode())

    assert cluster.core.handle(request, cluster.now) == DROPPED

    assert cluster.call("GET", f"{JOBS}/j")[0] == (200 if applied else 404)


def test_a_failure_of_any_kind_has_the_body_of_a_status() -> None:
    busy = failure(429, "TooManyRequests", "come again", {"retryAfterSeconds": 7})

    assert busy == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "come again",
        "reason": "TooManyRequests",
        "details": {"retryAfterSeconds": 7},
        "code": 429,
    }


def test_the_server_says_what_it_is(make_cluster) -> None:
    cluster = make_cluster(minor=32)

    assert cluster.call("GET", "/version")[1]["minor"] == "32"
    assert cluster.call("GET", "/healthz") == (200, "ok")
    assert cluster.call("GET", "/api")[1]["versions"] == ["v1"]
    assert [group["name"] for group in cluster.call("GET", "/apis")[1]["groups"]] == ["apps", "batch"]
    names = [one["name"] for one in cluster.call("GET", "/apis/batch/v1")[1]["resources"]]
    assert names == ["jobs", "jobs/status"]
    assert "pods/log" in [one["name"] for one in cluster.call("GET", "/api/v1")[1]["resources"]]
    assert "apis/batch/v1" in cluster.call("GET", "/openapi/v3")[1]["paths"]


def test_a_clock_that_is_set_back_turns_nothing_back(cluster, job, pod) -> None:
    cluster.create_job(job())
    cluster.wait(10)
    before = cluster.job()

    cluster.now -= timedelta(seconds=60)

    assert cluster.job() == before
    assert cluster.create_pod(pod())["metadata"]["creationTimestamp"] == "2026-03-01T12:00:10Z"
    cluster.wait(70)
    assert cluster.job()["status"]["active"] == 2

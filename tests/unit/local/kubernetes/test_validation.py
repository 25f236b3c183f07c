"""Objects that break a rule: what their schema says, and what their fields mean to each other."""

from __future__ import annotations

import json

import pytest

from runtender.local.http import HttpRequest
from runtender.local.kubernetes.schema import installed_schemas

JOBS = "/apis/batch/v1/namespaces/default/jobs"

needs_schemas = pytest.mark.skipif(
    installed_schemas(34) is None, reason="the package kubernetes-validate is not installed"
)


def without(body, *path):
    """Take a field out of a body."""
    holder = body
    for step in path[:-1]:
        holder = holder[step]
    holder.pop(path[-1])
    return body


@needs_schemas
@pytest.mark.parametrize(
    ("change", "code", "reason", "field"),
    [
        pytest.param({"completions": "4"}, 400, "BadRequest", "spec.completions", id="type"),
        pytest.param({"template": {"spec": {"containers": [{"image": "a"}]}}}, 422, "Invalid",
                     "spec.template.spec.containers[0].name", id="missing"),
        pytest.param({"completionMode": "Other"}, 422, "Invalid", "spec.completionMode", id="choice"),
        pytest.param({"template": None}, 422, "Invalid", "spec.template", id="no-template"),
    ],
)  # fmt: skip
def test_a_body_that_does_not_fit_the_schema_is_refused_by_field(
    cluster, job, change, code, reason, field
) -> None:
    status, answer = cluster.call("POST", JOBS, job(**change))

    assert (status, answer["reason"]) == (code, reason)
    assert field in answer["message"]
    if code == 422:
        assert field in [cause["field"] for cause in answer["details"]["causes"]]


@needs_schemas
@pytest.mark.parametrize(("mode", "code"), [("Strict", 400), ("Warn", 201), ("Ignore", 201)])
def test_an_unknown_field_is_refused_warned_of_or_passed_over(cluster, job, mode, code) -> None:
    request = HttpRequest(
        method="POST", path=JOBS, query={"fieldValidation": mode}, body=json.dumps(job(paralelism=3)).encode()
    )

    answer = cluster.core.handle(request, cluster.now)

    assert answer.status == code
    if mode == "Strict":
        assert answer.json()["message"].endswith('strict decoding error: unknown field "spec.paralelism"')
    else:
        assert "paralelism" not in answer.json()["spec"]
        assert ("Warning" in answer.headers) is (mode == "Warn")


@pytest.mark.parametrize(
    "path", [("spec",), ("spec", "template"), ("spec", "template", "spec", "containers")]
)
def test_without_schemas_an_object_still_needs_its_parts(make_cluster, job, path) -> None:
    cluster = make_cluster(schemas=None)

    status, answer = cluster.call("POST", JOBS, without(job(), *path))

    assert (status, answer["details"]["causes"][0]["field"]) == (422, ".".join(path))


def policy(rule):
    return {"podFailurePolicy": {"rules": [rule]}}


RULES = [
    pytest.param({"completions": -1, "parallelism": 1}, "spec.completions", id="negative"),
    pytest.param({"completions": None}, "spec.completions", id="indexed-needs-completions"),
    pytest.param(
        {"completionMode": "NonIndexed", "backoffLimitPerIndex": 1},
        "spec.backoffLimitPerIndex",
        id="index-limit",
    ),
    pytest.param({"maxFailedIndexes": 1}, "spec.backoffLimitPerIndex", id="most-failed-alone"),
    pytest.param(
        {"backoffLimitPerIndex": 1, "maxFailedIndexes": 9},
        "spec.maxFailedIndexes",
        id="most-failed-above-all",
    ),
    pytest.param(
        {"pod": {"restartPolicy": "Always"}}, "spec.template.spec.restartPolicy", id="restart-always"
    ),
    pytest.param(
        {"backoffLimitPerIndex": 1, "pod": {"restartPolicy": "OnFailure"}},
        "spec.template.spec.restartPolicy",
        id="restart-with-index-limit",
    ),
    pytest.param(
        policy({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}),
        "spec.podFailurePolicy.rules[0].action",
        id="fail-index-without-limit",
    ),
    pytest.param(
        policy({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}),
        "spec.podFailurePolicy.rules[0].onExitCodes.values",
        id="zero-is-no-failure",
    ),
    pytest.param(
        policy({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2, 1]}}),
        "spec.podFailurePolicy.rules[0].onExitCodes.values",
        id="codes-in-order",
    ),
    pytest.param(
        policy(
            {"action": "FailJob", "onExitCodes": {"containerName": "other", "operator": "In", "values": [1]}}
        ),
        "spec.podFailurePolicy.rules[0].onExitCodes.containerName",
        id="code-of-no-container",
    ),
    pytest.param(
        policy({"action": "FailJob"}), "spec.podFailurePolicy.rules[0]", id="rule-without-condition"
    ),
    pytest.param(
        {
            **policy({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}),
            "podReplacementPolicy": "TerminatingOrFailed",
        },
        "spec.podReplacementPolicy",
        id="policy-needs-failed-replacement",
    ),
    pytest.param(
        {"pod": {"container": {"image": ""}}}, "spec.template.spec.containers[0].image", id="no-image"
    ),
    pytest.param(
        {"pod": {"container": {"name": "A_b"}}}, "spec.template.spec.containers[0].name", id="container-name"
    ),
    pytest.param(
        {"pod": {"container": {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}}},
        "spec.template.spec.containers[0].volumeMounts[0].name",
        id="mount-of-nothing",
    ),
    pytest.param(
        {"pod": {"container": {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}}},
        "spec.template.spec.containers[0].resources.requests",
        id="request-above-limit",
    ),
    pytest.param(
        {"pod": {"container": {"resources": {"requests": {"cpu": "two"}}}}},
        "spec.template.spec.containers[0].resources.requests[cpu]",
        id="no-quantity",
    ),
    pytest.param(
        {"pod": {"container": {"resources": {"requests": {"nvidia.com/gpu": "1"}}}}},
        "spec.template.spec.containers[0].resources.limits",
        id="gpu-without-limit",
    ),
    pytest.param(
        {"pod": {"activeDeadlineSeconds": 0}}, "spec.template.spec.activeDeadlineSeconds", id="no-time"
    ),
]


@pytest.mark.parametrize(("change", "field"), RULES)
def test_a_job_that_breaks_a_rule_is_refused_by_field(cluster, job, change, field) -> None:
    status, answer = cluster.call("POST", JOBS, job(**change))

    assert (status, answer["reason"]) == (422, "Invalid")
    assert field in [cause["field"] for cause in answer["details"]["causes"]]
    assert answer["message"].startswith('Job.batch "j" is invalid: ')


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"name": "Upper"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"name": "a" * 62}, "metadata.name"),
        ({}, "metadata.name"),
        ({"name": "j", "labels": {"a": "b" * 64}}, "metadata.labels"),
        ({"name": "j", "labels": {"a": "not a value"}}, "metadata.labels"),
        ({"name": "j", "labels": {"bad key": "v"}}, "metadata.labels"),
    ],
)
def test_names_and_labels_have_a_form(cluster, job, metadata, field) -> None:
    status, answer = cluster.call("POST", JOBS, {**job(), "metadata": metadata})

    assert (status, answer["details"]["causes"][0]["field"]) == (422, field)

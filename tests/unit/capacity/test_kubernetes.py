"""What a Kubernetes API's refusals mean."""

from __future__ import annotations

import pytest

from runtender.capacity.kubernetes import classify_status, status_of
from runtender.model import Scope, Verdict
from runtender.ports import ApiAnswer


def status(code, reason="", message="", retry_after_s=None, **details):
    body = {"kind": "Status", "reason": reason, "message": message, "code": code}
    return ApiAnswer(
        status=code,
        body=body | ({"details": details} if details else {}),
        text="raw",
        retry_after_s=retry_after_s,
    )


@pytest.mark.parametrize(
    ("answer", "verdict", "scope", "code"),
    [
        pytest.param(status(400, "BadRequest"), Verdict.CONFIG_FAULT, Scope.PROJECT, "BadRequest", id="400"),
        pytest.param(
            status(401, "Unauthorized"), Verdict.CONFIG_FAULT, Scope.PROJECT, "Unauthorized", id="401"
        ),
        pytest.param(
            status(403, "Forbidden", 'User "x" cannot create resource "jobs"'),
            Verdict.CONFIG_FAULT,
            Scope.PROJECT,
            "Forbidden",
            id="403 permission",
        ),
        pytest.param(
            status(403, "Forbidden", 'jobs.batch "a" is forbidden: exceeded quota: q, requested: 1'),
            Verdict.HARD_CEILING,
            Scope.ZONE,
            "ExceededQuota",
            id="403 quota of the namespace",
        ),
        pytest.param(
            status(404, "NotFound", 'namespaces "n" not found'),
            Verdict.CONFIG_FAULT,
            Scope.PROJECT,
            "NotFound",
            id="404 namespace",
        ),
        pytest.param(
            status(404, "ClusterNotFound"),
            Verdict.CONFIG_FAULT,
            Scope.PROJECT,
            "ClusterNotFound",
            id="404 cluster",
        ),
        pytest.param(
            ApiAnswer(status=404, text="<html>"), Verdict.RETRY, Scope.ZONE, "404", id="404 of a proxy"
        ),
        pytest.param(status(409, "AlreadyExists"), Verdict.ADOPT, Scope.ZONE, "AlreadyExists", id="409 name"),
        pytest.param(status(409, "Conflict"), Verdict.RETRY, Scope.ZONE, "Conflict", id="409 two writers"),
        pytest.param(status(422, "Invalid"), Verdict.CONFIG_FAULT, Scope.PROJECT, "Invalid", id="422"),
        pytest.param(
            status(429, "TooManyRequests", "exceeded quota of requests"),
            Verdict.RATE_LIMITED,
            Scope.PROJECT,
            "TooManyRequests",
            id="429 whatever it says",
        ),
        pytest.param(status(500, "InternalError"), Verdict.RETRY, Scope.ZONE, "InternalError", id="500"),
        pytest.param(status(504, "Timeout"), Verdict.RETRY, Scope.ZONE, "Timeout", id="504"),
        pytest.param(ApiAnswer(status=0, text="ReadTimeout"), Verdict.RETRY, Scope.ZONE, "0", id="no answer"),
    ],
)
def test_status_and_reason_decide_together(answer, verdict, scope, code):
    refusal = classify_status(answer)
    assert (refusal.verdict, refusal.scope, refusal.code, refusal.recognised) == (verdict, scope, code, True)


def test_an_unknown_refusal_is_taken_for_a_lack_of_room_and_counted():
    refusal = classify_status(status(418, "Teapot", "short and stout"))
    assert (refusal.verdict, refusal.scope) == (Verdict.TRANSIENT_CAPACITY, Scope.ZONE)
    assert (refusal.recognised, refusal.message) == (False, "short and stout")


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        pytest.param(status(429, retryAfterSeconds=5), 5.0, id="in the body"),
        pytest.param(status(429, retry_after_s=9.0), 9.0, id="in the header"),
        pytest.param(status(429, retry_after_s=9.0, retryAfterSeconds=0), 9.0, id="zero is no word"),
        pytest.param(status(429), None, id="nowhere"),
    ],
)
def test_the_wait_is_as_long_as_the_server_asks(answer, seconds):
    assert status_of(answer).retry_after_s == seconds


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(status(403, "Forbidden", "m" * 9000), "m" * 2000, id="cut"),
        pytest.param(ApiAnswer(status=502, text="bad gateway"), "bad gateway", id="a page's text"),
        pytest.param(ApiAnswer(status=502), "HTTP 502", id="nothing said"),
        pytest.param(
            ApiAnswer(status=403, body={"message": "not a Status"}, text="raw"),
            "raw",
            id="another kind of body",
        ),
    ],
)
def test_the_apis_own_words_are_kept(answer, words):
    assert classify_status(answer).message == words

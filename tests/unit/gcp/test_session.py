"""Signed sessions against a local token server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from runtender.gcp.session import google_session, plain_session
from runtender.local.http import HttpResponse, json_response


def test_a_session_asks_for_no_token_before_its_first_call(credentials, tokens):
    google_session()
    assert tokens["given"] == []


def test_calls_are_signed_with_one_token_also_from_many_threads(credentials, tokens, service):
    service.answers = [HttpResponse(status=204)]
    session = google_session()
    session.request("GET", f"{service.url}/first", timeout=(5, 5))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: session.request("GET", f"{service.url}/{n}", timeout=(5, 5)), range(8)))
    assert {request.headers["Authorization"] for request in service.requests} == {"Bearer token-1"}
    assert (len(service.requests), tokens["given"]) == (9, ["token-1"])


def test_a_token_that_is_refused_is_renewed_once(credentials, tokens, service):
    service.answers = [HttpResponse(status=401), HttpResponse(status=200, body=b"ok")]
    answer = google_session().request(
        "POST", f"{service.url}/x", params={"a": "b"}, data=b"body", headers={"X-A": "1"}, timeout=(5, 5)
    )
    assert answer.content == b"ok"
    assert [request.headers["Authorization"] for request in service.requests] == [
        "Bearer token-1",
        "Bearer token-2",
    ]
    assert [(request.query, request.body) for request in service.requests] == [({"a": "b"}, b"body")] * 2


def test_a_call_without_a_token_is_a_connection_that_did_not_come_about(credentials, tokens, service):
    tokens["instead"] = json_response(400, {"error": "invalid_grant", "error_description": "account is gone"})
    with pytest.raises(requests.ConnectionError, match=r"no credentials for .*account is gone"):
        google_session().request("GET", service.url, timeout=(5, 5))
    assert service.requests == []


def test_missing_credentials_are_a_connection_that_did_not_come_about(tmp_path, monkeypatch, service):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "absent.json"))
    with pytest.raises(requests.ConnectionError, match=r"absent\.json"):
        google_session().request("GET", service.url, timeout=(5, 5))


def test_a_plain_session_reaches_this_machine_past_a_proxy(service, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    service.answers = [HttpResponse(status=200)]
    assert plain_session().request("GET", service.url, timeout=(5, 5)).status_code == 200
    assert "Authorization" not in service.requests[0].headers

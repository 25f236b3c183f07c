"""Signed sessions against a local token server, with a key made for the test."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from runtender.gcp.session import google_session, plain_session
from runtender.local.http import HttpResponse, json_response, serve


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.fixture
def tokens():
    """The tokens given out so far, and what the token server does instead of giving one."""
    return {"given": [], "instead": None}


@pytest.fixture
def credentials(private_key, tokens, tmp_path, monkeypatch):
    def give(_request):
        if tokens["instead"] is not None:
            return tokens["instead"]
        tokens["given"].append(f"token-{len(tokens['given']) + 1}")
        return json_response(200, {"access_token": tokens["given"][-1], "expires_in": 3600})

    with serve(give) as server:
        account = {
            "type": "service_account",
            "client_email": "functions@p-1.iam.gserviceaccount.com",
            "private_key": private_key,
            "private_key_id": "1",
            "token_uri": f"{server.url}/token",
        }
        (tmp_path / "key.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
        yield


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

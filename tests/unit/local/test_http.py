"""The HTTP plumbing: what a core is given and what a client gets, over a socket and in process alike."""

from __future__ import annotations

import socket
import subprocess
import threading
from datetime import UTC, datetime
from io import BytesIO

import pytest
import requests

from runtender.local.http import (
    DROPPED,
    CoreAdapter,
    HttpRequest,
    HttpResponse,
    LocalAuthority,
    by_prefix,
    google_error,
    json_response,
    on_clock,
    serve,
)
from runtender.local.http.server import thread_name

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def echo(request: HttpRequest, now: datetime = NOW) -> HttpResponse:
    """Answer with what arrived."""
    if request.path == "/dropped":
        return DROPPED
    if request.path == "/nothing":
        return HttpResponse(status=204)
    arrived = {
        "method": request.method,
        "segments": request.segments,
        "query": dict(request.query),
        "colour": request.headers.get("x-colour"),
        "size": len(request.body),
        "now": now.isoformat(),
    }
    return json_response(200, arrived, {"X-Answer": "yes"})


class SessionToCore(requests.Session):
    """A session that knows where the core is."""

    base: str


@pytest.fixture(params=["over a socket", "in process"])
def session(request):
    """A session whose requests reach `echo`, whichever way."""
    session = SessionToCore()
    session.trust_env = False
    if request.param == "in process":
        session.mount("http://core/", CoreAdapter(echo, lambda: NOW))
        session.base = "http://core"
        yield session
    else:
        with serve(on_clock(echo, lambda: NOW)) as server:
            session.base = server.url
            yield session
    session.close()


def test_a_request_arrives_as_it_was_sent(session):
    answer = session.post(
        session.base + "/b/runs%2Fa%20b/x?prefix=a%2Fb&empty=", data=b"12345", headers={"X-COLOUR": "red"}
    )
    assert answer.json() == {
        "method": "POST",
        "segments": ["b", "runs/a b", "x"],
        "query": {"prefix": "a/b", "empty": ""},
        "colour": "red",
        "size": 5,
        "now": NOW.isoformat(),
    }
    assert answer.headers["x-answer"] == "yes"


@pytest.mark.parametrize(
    ("body", "size"),
    [
        pytest.param(b"bytes", 5, id="bytes"),
        pytest.param("text", 4, id="text"),
        pytest.param(BytesIO(b"stream"), 6, id="stream"),
        pytest.param(iter([b"two ", b"pieces"]), 10, id="pieces"),
    ],
)
def test_every_kind_of_body_arrives_whole_in_process(body, size):
    with requests.Session() as session:
        session.mount("http://core/", CoreAdapter(echo, lambda: NOW))
        assert session.post("http://core/", data=body).json()["size"] == size


def test_a_body_in_chunks_arrives_whole():
    with serve(echo) as server, requests.Session() as session:
        session.trust_env = False
        assert session.put(server.url, data=iter([b"abc", b"defg"])).json()["size"] == 7


def test_a_dropped_connection_is_a_connection_error(session):
    with pytest.raises(requests.ConnectionError):
        session.get(session.base + "/dropped")
    assert session.get(session.base + "/again").status_code == 200


def test_an_answer_without_a_body_ends_where_it_ends(session):
    assert session.delete(session.base + "/nothing").status_code == 204
    assert session.head(session.base + "/x").content == b""
    assert session.get(session.base + "/again").status_code == 200


def test_an_unreadable_length_is_a_bad_request():
    with serve(echo) as server, socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n")
        answer = client.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_curl_need_not_wait_to_send_a_large_body(tmp_path):
    body = tmp_path / "body"
    body.write_bytes(b"x" * 3_000_000)
    with serve(echo) as server:
        command = ["curl", "-sS", "--noproxy", "*", "-H", "Expect: 100-continue", "-w", "%{time_total}"]
        command += ["-o", "/dev/null", "--data-binary", f"@{body}", server.url]
        done = subprocess.run(command, check=True, capture_output=True, timeout=20)
    # Curl itself gives up waiting for `100 Continue` after one second.
    assert float(done.stdout) < 0.9


def test_closing_ends_kept_connections_and_threads():
    def threads() -> int:
        return sum(thread.name == thread_name(server.port) for thread in threading.enumerate())

    with requests.Session() as session:
        session.trust_env = False
        server = serve(echo)
        session.get(server.url)
        assert threads() == 2
        server.close()
        server.close()
        assert threads() == 0
        with pytest.raises(requests.ConnectionError):
            session.get(server.url)


def test_google_names_are_served_with_a_certificate_of_our_own(tmp_path):
    authority = LocalAuthority.create(tmp_path)
    with serve(echo, tls=authority) as server:
        connect = f"storage.googleapis.com:443:127.0.0.1:{server.port}"
        command = [
            "curl",
            "-sS",
            "--noproxy",
            "*",
            "--connect-to",
            connect,
            "https://storage.googleapis.com/x",
        ]
        trust = ["--cacert", str(authority.ca_file)]
        trusting = subprocess.run([*command, *trust], check=True, capture_output=True, timeout=20)
        others = subprocess.run(command, check=False, capture_output=True, timeout=20)
    assert b'"segments": ["x"]' in trusting.stdout
    assert others.returncode == 60
    assert authority.server_file.stat().st_mode & 0o077 == 0


def test_the_longest_prefix_answers():
    handler = by_prefix(
        {
            "/": lambda _request: json_response(200, "short"),
            "/v1/": lambda _request: json_response(200, "long"),
        }
    )
    assert handler(HttpRequest(method="GET", path="/v1/x")).json() == "long"
    assert handler(HttpRequest(method="GET", path="/other")).json() == "short"
    assert by_prefix({})(HttpRequest(method="GET", path="/x")).status == 404


def test_errors_have_googles_shape():
    answer = google_error(
        404, "notFound", "no such thing", word="NOT_FOUND", details=[{"@type": "t"}], location="name"
    )
    entry = {"message": "no such thing", "domain": "global", "reason": "notFound", "location": "name"}
    assert answer.json() == {
        "error": {
            "code": 404,
            "message": "no such thing",
            "errors": [entry],
            "status": "NOT_FOUND",
            "details": [{"@type": "t"}],
        }
    }

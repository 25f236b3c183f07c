"""REST calls against a real socket whose answers are scripted."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from runtender.gcp.compute import RestApi
from runtender.local.http import DROPPED, HttpResponse, json_response, serve
from runtender.ports import Api, ApiAnswer, ApiRequest

OK = json_response(200, {"status": "RUNNING"})
BUSY = HttpResponse(status=503)

GET = ApiRequest(method_id="compute.instances.get", verb="GET", path="/projects/p/zones/z/instances/sf-a")
INSERT = ApiRequest(
    method_id="compute.instances.insert",
    verb="POST",
    path="/projects/p/zones/z/instances",
    query={"requestId": "7d1bb2ad"},
    body={"name": "sf-ä"},
    creates=True,
)
DELETE = ApiRequest(
    method_id="compute.instances.delete", verb="DELETE", path="/projects/p/zones/z/instances/sf-a"
)
SET_LABELS = ApiRequest(method_id="compute.instances.setLabels", verb="POST", path="/x", body={})


@pytest.fixture
def api(service, session, clock) -> Api:
    return RestApi(session, f"{service.url}/compute/v1/", clock=clock)


def test_a_request_is_sent_as_it_is_described(service, api):
    service.answers = [json_response(200, {"name": "operation-1"})]
    answer = api.send(INSERT)
    (request,) = service.requests
    assert (request.method, request.path) == ("POST", "/compute/v1/projects/p/zones/z/instances")
    assert request.query == {"requestId": "7d1bb2ad"}
    assert (request.json(), request.headers["Content-Type"]) == ({"name": "sf-ä"}, "application/json")
    assert (answer.status, answer.body, answer.ok) == (200, {"name": "operation-1"}, True)


def test_a_request_without_a_body_sends_none(service, api):
    service.answers = [OK]
    api.send(GET)
    (request,) = service.requests
    assert (request.body, "Content-Type" in request.headers) == (b"", False)


@pytest.mark.parametrize(
    ("body", "parsed"),
    [
        pytest.param(b'{"error": {"code": 404}}', {"error": {"code": 404}}, id="an object"),
        pytest.param(b"<html>proxy says no</html>", {}, id="a page"),
        pytest.param(b"[1]", {}, id="a list"),
        pytest.param(b"", {}, id="nothing"),
        pytest.param(b'{"cut', {}, id="a cut object"),
        pytest.param(b"\xff\xfe", {}, id="bytes that are no text"),
    ],
)
def test_a_refusal_is_an_answer_whatever_its_body(service, api, body, parsed):
    service.answers = [HttpResponse(status=404, body=body)]
    answer = api.send(GET)
    assert (answer.status, answer.body, answer.ok) == (404, parsed, False)
    assert answer.text == body.decode(errors="replace")


def test_the_text_of_an_answer_is_cut(service, api):
    service.answers = [HttpResponse(status=502, body=b"x" * 1_000_000)]
    assert len(api.send(DELETE).text) == 65_536


@pytest.mark.parametrize("trouble", [DROPPED, *(HttpResponse(status=s) for s in (408, 500, 502, 503, 504))])
def test_a_read_is_repeated_until_the_trouble_has_passed(service, api, clock, trouble):
    service.answers = [trouble, trouble, OK]
    assert api.send(GET).status == 200
    assert clock.sleeps == [0.5, 1.0]


def test_a_read_is_repeated_three_times_and_then_answered_as_it_is(service, api, clock):
    service.answers = [BUSY]
    assert api.send(GET).status == 503
    assert len(service.requests) == 4
    assert clock.sleeps == [0.5, 1.0, 2.0]


def test_a_read_is_not_repeated_beyond_its_time_out(service, session, clock):
    api = RestApi(session, service.url, clock=clock, timeout=timedelta(seconds=1.2))
    service.answers = [BUSY]
    assert api.send(GET).status == 503
    assert clock.sleeps == [0.5]


def test_a_read_waits_as_long_as_the_server_asks(service, api, clock):
    service.answers = [HttpResponse(status=503, headers={"Retry-After": "7"}), OK]
    assert api.send(GET).status == 200
    assert clock.sleeps == [7.0]


@pytest.mark.parametrize("status", [200, 204, 400, 401, 403, 404, 409, 412, 429])
def test_a_definite_answer_to_a_read_is_not_asked_for_again(service, api, status):
    service.answers = [HttpResponse(status=status)]
    assert api.send(GET).status == status
    assert len(service.requests) == 1


@pytest.mark.parametrize("request_", [INSERT, DELETE, SET_LABELS], ids=lambda r: r.method_id)
@pytest.mark.parametrize("trouble", [DROPPED, BUSY, HttpResponse(status=429)], ids=["dropped", "503", "429"])
def test_a_write_is_sent_once_whatever_comes_back(service, api, clock, request_, trouble):
    service.answers = [trouble]
    assert api.send(request_).status == trouble.status
    assert (len(service.requests), clock.sleeps) == (1, [])


def test_a_lost_connection_is_an_answer_without_status_that_says_why(service, api):
    service.answers = [DROPPED]
    answer = api.send(INSERT)
    assert (answer.status, answer.body, answer.ok) == (0, {}, False)
    assert "ConnectionError" in answer.text


def test_a_server_that_is_not_there_is_an_answer_without_status(session, clock):
    with serve(lambda _request: OK) as gone:
        pass
    assert RestApi(session, gone.url, clock=clock).send(DELETE).status == 0


def test_a_server_that_says_nothing_is_given_up_after_the_time_out(session, clock):
    release = threading.Event()

    def silent(_request):
        release.wait(10)
        return OK

    with serve(silent) as server:
        answer = RestApi(session, server.url, clock=clock, timeout=timedelta(seconds=0.2)).send(INSERT)
        release.set()
    assert answer.status == 0
    assert "Timeout" in answer.text


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param("120", 120.0, id="seconds"),
        pytest.param("Sun, 01 Mar 2026 12:00:30 GMT", 30.0, id="a date"),
        pytest.param("Sun, 01 Mar 2026 11:00:00 GMT", 0.0, id="a date that has passed"),
        pytest.param("soon", None, id="neither"),
        pytest.param("-1", None, id="a negative number"),
        pytest.param("", None, id="empty"),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(service, api, header, seconds):
    service.answers = [HttpResponse(status=429, headers={"Retry-After": header})]
    assert api.send(INSERT) == ApiAnswer(status=429, retry_after_s=seconds)

"""The running dispatcher: real requests to real endpoints, the REST face, the publisher and the ticker."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import requests

from runtender.errors import Rejected, Retryable
from runtender.local.http import DROPPED, CoreAdapter, Fault, HttpRequest, HttpResponse, json_response, serve
from runtender.local.publisher import EmbeddedTopics
from runtender.local.ticker import Ticker
from runtender.local.topics import Pusher, Subscription, TopicsApi, TopicsCore, TopicsServer

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
# Pub/Sub's minutes as milliseconds.
FAST = 1000.0


class Function:
    """An endpoint that keeps what it was sent and answers with the statuses it was given, then with 204."""

    def __init__(self, *statuses: int) -> None:
        self.received: list[dict] = []
        self._statuses = list(statuses)
        self._gate = threading.Lock()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with self._gate:
            self.received.append(request.json())
            return HttpResponse(status=self._statuses.pop(0) if self._statuses else 204)

    @property
    def bodies(self) -> list[bytes]:
        return [base64.b64decode(one["message"]["data"]) for one in self.received]


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for a condition that real threads bring about."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


def a_core(endpoint: str | None, **more) -> TopicsCore:
    more = {"ack_deadline": timedelta(hours=8), "dead_letter_topic": "dead", **more}
    submit = Subscription(name="submit-push", topic="submit", endpoint=endpoint, **more)
    dead = Subscription(name="dead-pull", topic="dead")
    return TopicsCore(project="demo", topics=("submit", "dead"), subscriptions=(submit.scaled(FAST), dead))


def submit_counts(server: TopicsServer) -> dict[str, int]:
    counts: dict[str, int] = server.counts()["subscriptions"]["submit-push"]
    return counts


def test_a_published_message_reaches_the_endpoint():
    function = Function()
    with serve(function) as endpoint, TopicsServer(a_core(f"{endpoint.url}/on_submit/")) as server:
        message_id = EmbeddedTopics(server.url, "demo").publish("submit", b"run", {"k": "v"})
        eventually(lambda: submit_counts(server)["delivered"] == 1)
    [push] = function.received
    assert push["message"]["messageId"] == message_id
    assert push["message"]["attributes"] == {"k": "v"}
    assert function.bodies == [b"run"]


@pytest.mark.parametrize("status", [302, 400, 404, 500, 503])
def test_a_refused_message_comes_again(status):
    function = Function(status, status)
    with serve(function) as endpoint, TopicsServer(a_core(endpoint.url)) as server:
        server.publish("submit", b"run", {}, datetime.now(UTC))
        eventually(lambda: submit_counts(server)["delivered"] == 1)
        assert submit_counts(server)["failed"] == 2
    assert [push["deliveryAttempt"] for push in function.received] == [1, 2, 3]


def test_an_endpoint_that_is_down_gets_its_messages_when_it_is_back():
    function = Function()
    with serve(function) as endpoint:
        port = endpoint.port
    core = a_core(f"http://127.0.0.1:{port}/", max_attempts=1000)
    with TopicsServer(core) as server:
        server.publish("submit", b"run", {}, datetime.now(UTC))
        eventually(lambda: submit_counts(server)["failed"] >= 2)
        with serve(function, port=port):
            eventually(lambda: submit_counts(server)["delivered"] == 1)


def test_an_endpoint_that_is_too_slow_is_asked_again():
    release = threading.Event()
    calls = []

    def slow_once(_request: HttpRequest) -> HttpResponse:
        calls.append(1)
        if len(calls) == 1:
            release.wait(10)
        return HttpResponse(status=204)

    with serve(slow_once) as endpoint:
        with TopicsServer(a_core(endpoint.url, ack_deadline=timedelta(seconds=100))) as server:
            server.publish("submit", b"run", {}, datetime.now(UTC))
            eventually(lambda: submit_counts(server)["delivered"] == 1)
            assert submit_counts(server)["failed"] >= 1
        release.set()
    assert len(calls) >= 2


def test_a_redirect_is_not_followed():
    paths = []

    def to_the_slash(request: HttpRequest) -> HttpResponse:
        paths.append(request.path)
        return HttpResponse(status=308, headers={"Location": "/on_submit/"})

    with serve(to_the_slash) as endpoint, TopicsServer(a_core(f"{endpoint.url}/on_submit")) as server:
        server.publish("submit", b"run", {}, datetime.now(UTC))
        eventually(lambda: submit_counts(server)["failed"] >= 1)
    assert set(paths) == {"/on_submit"}


def test_an_endpoint_that_hangs_does_not_keep_its_thread():
    release = threading.Event()
    calls = []

    def hang_once(_request: HttpRequest) -> HttpResponse:
        calls.append(1)
        if len(calls) == 1:
            release.wait(10)
        return HttpResponse(status=204)

    with serve(hang_once) as endpoint:
        core = a_core(endpoint.url, ack_deadline=timedelta(seconds=100))
        changed = threading.Condition()
        pusher = Pusher(core, changed, parallel=1)
        with changed:
            core.publish("submit", b"run", {}, datetime.now(UTC))
            changed.notify_all()
        eventually(lambda: len(calls) >= 2, seconds=5)
        release.set()
        pusher.close()


def test_deliveries_run_side_by_side():
    together = threading.Barrier(5, timeout=10)

    def meet(_request: HttpRequest) -> HttpResponse:
        together.wait()
        return HttpResponse(status=204)

    with serve(meet) as endpoint:
        core = a_core(endpoint.url)
        with TopicsServer(core) as server:
            for number in range(5):
                server.publish("submit", b"%d" % number, {}, datetime.now(UTC))
            eventually(lambda: submit_counts(server)["delivered"] == 5)


def call(server: TopicsServer, path: str, document: object) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        return session.post(f"{server.url}/v1/projects/demo/{path}", json=document, timeout=10)


def test_a_dead_letter_can_be_pulled_and_acknowledged():
    function = Function(500, 500)
    with serve(function) as endpoint, TopicsServer(a_core(endpoint.url, max_attempts=2)) as server:
        server.publish("submit", b"run", {}, datetime.now(UTC))
        eventually(lambda: len(server.waiting("dead-pull")) == 1)
        [letter] = call(server, "subscriptions/dead-pull:pull", {"maxMessages": 5}).json()["receivedMessages"]
        assert base64.b64decode(letter["message"]["data"]) == b"run"
        assert letter["message"]["attributes"]["CloudPubSubDeadLetterSourceDeliveryCount"] == "2"
        assert call(server, "subscriptions/dead-pull:pull", {"maxMessages": 5}).json() == {}
        acknowledged = call(server, "subscriptions/dead-pull:acknowledge", {"ackIds": [letter["ackId"]]})
        assert acknowledged.json() == {}
        assert server.waiting("dead-pull") == ()


@pytest.mark.parametrize(
    ("path", "document", "status"),
    [
        pytest.param("topics/none:publish", {"messages": [{"data": "eA=="}]}, 404, id="unknown topic"),
        pytest.param("subscriptions/none:pull", {"maxMessages": 1}, 404, id="unknown subscription"),
        pytest.param("topics/submit:drop", {}, 404, id="unknown verb"),
        pytest.param("topics/submit:publish", {"messages": []}, 400, id="nothing to publish"),
        pytest.param("topics/submit:publish", {"messages": [{"data": "?"}]}, 400, id="not base64"),
        pytest.param("topics/submit:publish", {"messages": ["x"]}, 400, id="no message"),
        pytest.param("topics/submit:publish", {"messages": "x"}, 400, id="no list"),
        pytest.param("topics/submit:publish", [1], 400, id="no object"),
        pytest.param(
            "topics/submit:publish",
            {"messages": [{"attributes": {"n": 1}}]},
            400,
            id="attribute is no string",
        ),
        pytest.param(
            "topics/submit:publish", {"messages": [{"data": "eA=="}, {}]}, 400, id="one of two is empty"
        ),
        pytest.param("subscriptions/dead-pull:pull", {}, 400, id="pull of nothing"),
    ],
)
def test_bad_calls_are_refused_in_googles_shape(path, document, status):
    core = a_core(None)
    with TopicsServer(core) as server:
        answer = call(server, path, document)
        assert answer.status_code == status
        assert answer.json()["error"]["code"] == status
        assert server.waiting("submit-push") == ()


def a_publisher(core: TopicsCore, faults=lambda _method, _request: None) -> EmbeddedTopics:
    session = requests.Session()
    session.mount("http://topics/", CoreAdapter(TopicsApi(core, faults).handle, lambda: NOW))
    return EmbeddedTopics("http://topics/", "demo", session)


def test_the_publisher_works_in_process():
    core = a_core(None)
    a_publisher(core).publish("submit", b"\x00run", {"k": "v"})
    [message] = core.waiting("submit-push")
    assert (message.body, message.attributes, message.published_at) == (b"\x00run", {"k": "v"}, NOW)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(DROPPED, Retryable, id="no answer"),
        pytest.param(json_response(503, {}), Retryable, id="unavailable"),
        pytest.param(json_response(429, {}), Retryable, id="too many"),
        pytest.param(json_response(403, {}), Rejected, id="forbidden"),
    ],
)
def test_the_publisher_says_whether_to_try_again(answer, error):
    publisher = a_publisher(a_core(None), lambda _method, _request: Fault(answer=answer))
    with pytest.raises(error, match="'submit'"):
        publisher.publish("submit", b"run", {})


def test_publishing_to_an_unknown_topic_is_rejected():
    with pytest.raises(Rejected, match="'nowhere'"):
        a_publisher(a_core(None)).publish("nowhere", b"x", {})


def test_the_ticker_ticks_at_once_and_then_each_period_until_closed():
    ticks = []
    with Ticker(lambda *tick: ticks.append(tick), "sf-tick", period=timedelta(milliseconds=20)):
        eventually(lambda: len(ticks) >= 4)
    stopped = len(ticks)
    moments = [now for _topic, _body, _attributes, now in ticks]
    time.sleep(0.05)
    assert len(ticks) == stopped
    assert {topic for topic, *_ in ticks} == {"sf-tick"}
    assert (moments[3] - moments[0]).total_seconds() >= 0.05


def test_a_ticker_with_a_long_period_closes_at_once():
    ticks = []
    ticker = Ticker(lambda *tick: ticks.append(tick), "sf-tick")
    eventually(lambda: len(ticks) == 1)
    ticker.close()
    ticker.close()
    assert len(ticks) == 1

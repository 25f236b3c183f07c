"""The relay between the Pub/Sub emulator and the functions: passes on what it is told, and plays a scenario's rules."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
import requests

from runtender.local.backend.relay import PushRelay
from runtender.local.http import HttpRequest, HttpResponse, serve
from runtender.local.topics import Arrivals, Message, Subscription, once

PATIENCE_S = 30.0
NONE: tuple[timedelta, ...] = ()
AT_ONCE = timedelta(0)


@dataclass
class Function:
    """An endpoint that answers with what it is told to, and keeps what it got."""

    answers: list[int] = field(default_factory=list)
    got: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def handle(self, request: HttpRequest) -> HttpResponse:
        self.got.append(request.json())
        return HttpResponse(status=self.answers.pop(0) if self.answers else 204)

    def await_calls(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.got) < count:
            assert time.monotonic() < deadline, f"{len(self.got)} calls, not {count}"
            time.sleep(0.01)


@pytest.fixture
def function() -> Iterator[Function]:
    function = Function()
    with serve(function.handle) as server:
        function.url = server.url
        yield function


@dataclass(frozen=True)
class Emulator:
    """Whoever pushes to a relay."""

    relay: PushRelay
    subscription: Subscription

    def push(self, message_id: str = "1") -> int:
        """Push a message; return the status of the answer."""
        endpoint = self.relay.endpoint(self.subscription)
        return requests.post(endpoint, json=a_push(message_id), timeout=PATIENCE_S).status_code


@contextmanager
def a_relay(function: Function, arrivals: Arrivals = once) -> Iterator[Emulator]:
    """A relay in front of a function, with the emulator in front of it."""
    subscription = Subscription(
        name="submit-push",
        topic="submit",
        endpoint=f"{function.url}/on_submit/",
        min_backoff=timedelta(milliseconds=1),
    )
    pulled = Subscription(name="notify-pull", topic="notify")
    with PushRelay([subscription, pulled], arrivals) as relay:
        yield Emulator(relay, subscription)


def a_push(message_id: str) -> dict[str, Any]:
    message = {
        "data": base64.b64encode(b"{}").decode(),
        "attributes": {"objectId": "runs/status/x"},
        "messageId": message_id,
        "publishTime": "2026-01-01T00:00:00.5Z",
    }
    return {"message": message, "subscription": "projects/local/subscriptions/submit-push"}


def arriving(*plans: Sequence[timedelta]) -> tuple[Arrivals, list[Message]]:
    """Rules for the first messages, in their order; those after them arrive as they are. And what was asked about."""
    left, asked = list(plans), list[Message]()
    gate = threading.Lock()

    def arrivals(subscription: Subscription, message: Message) -> Sequence[timedelta]:
        with gate:
            asked.append(message)
            return left.pop(0) if left else once(subscription, message)

    return arrivals, asked


@pytest.mark.parametrize(("answer", "passed_on"), [(204, 204), (200, 204), (503, 503), (400, 503)])
def test_what_the_function_answers_is_what_the_emulator_hears(function, answer, passed_on):
    function.answers = [answer]
    with a_relay(function) as emulator:
        assert emulator.push() == passed_on
        assert emulator.relay.delivered() == {"submit-push": 1 if answer < 300 else 0}
    assert function.got == [a_push("1")]


def test_a_message_is_known_by_its_subscription_and_content(function):
    arrivals, asked = arriving()
    with a_relay(function, arrivals) as emulator:
        emulator.push("7")
    (message,) = asked
    assert (message.id, message.topic, message.body) == ("7", "submit", b"{}")
    assert message.attributes == {"objectId": "runs/status/x"}
    assert message.published_at.isoformat() == "2026-01-01T00:00:00.500000+00:00"


def test_a_lost_event_is_acknowledged_and_goes_nowhere(function):
    arrivals, _ = arriving(NONE)
    with a_relay(function, arrivals) as emulator:
        assert emulator.push() == 204
        assert emulator.relay.delivered() == {"submit-push": 0}
    assert function.got == []


def test_a_doubled_event_arrives_twice(function):
    arrivals, _ = arriving([AT_ONCE, timedelta(milliseconds=1)])
    with a_relay(function, arrivals) as emulator:
        assert emulator.push() == 204
        function.await_calls(2)
    assert function.got == [a_push("1")] * 2


def test_an_event_that_is_held_up_is_overtaken_and_dropped_with_the_relay(function):
    arrivals, _ = arriving([timedelta(seconds=PATIENCE_S)])
    begun = time.monotonic()
    with a_relay(function, arrivals) as emulator:
        assert emulator.push("late") == 204
        assert emulator.push("early") == 204
    assert time.monotonic() - begun < PATIENCE_S
    assert function.got == [a_push("early")]


def test_an_event_that_is_carried_from_here_is_tried_until_it_is_taken(function):
    arrivals, _ = arriving([timedelta(milliseconds=1)])
    function.answers = [503, 500]
    with a_relay(function, arrivals) as emulator:
        assert emulator.push() == 204
        function.await_calls(3)


def test_a_repeated_push_is_no_new_event(function):
    arrivals, asked = arriving([AT_ONCE], NONE)
    function.answers = [503]
    with a_relay(function, arrivals) as emulator:
        assert [emulator.push("1"), emulator.push("1")] == [503, 204]
        assert len(asked) == 1
        assert emulator.push("2") == 204
    assert [each["message"]["messageId"] for each in function.got] == ["1", "1"]


def test_a_subscription_that_does_not_push_has_no_place_here(function):
    with a_relay(function) as emulator:
        elsewhere = emulator.relay.endpoint(Subscription(name="notify-pull", topic="notify"))
        assert requests.post(elsewhere, json=a_push("1"), timeout=10).status_code == 404

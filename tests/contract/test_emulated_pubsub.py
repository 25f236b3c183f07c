"""The plane's topics and push subscriptions, as Google's Pub/Sub emulator takes and serves them."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
import requests

from runtender.gcp.pubsub import PubSubTopics
from runtender.local.backend.pubsub import EmulatedPubSub
from runtender.local.http import HttpRequest, HttpResponse, serve
from runtender.local.topics import Subscription, plane_subscriptions, plane_topics
from runtender.settings import Settings

pytestmark = pytest.mark.emulator("pubsub")

PATIENCE_S = 60.0
SETTINGS = {"SF_PROJECT_ID": "local", "SF_CODE_BUCKET": "local-code", "SF_TIME_SCALE": "20"}


@dataclass
class Function:
    """Takes pushes in, and refuses those whose body is `no`."""

    url: str = ""
    got: list[dict[str, Any]] = field(default_factory=list)
    tried_at: list[float] = field(default_factory=list)

    def handle(self, request: HttpRequest) -> HttpResponse:
        self.tried_at.append(time.monotonic())
        document = request.json()
        if document["message"].get("data") == base64.b64encode(b"no").decode():
            return HttpResponse(status=503)
        self.got.append(document)
        return HttpResponse(status=204)


@dataclass
class Place:
    """An emulator's project, to be filled and looked into."""

    there: EmulatedPubSub
    project: str
    host: str

    def publish(self, body: bytes, topic: str = "submit", **attributes: str) -> str:
        return PubSubTopics(self.project, self.there.publisher).publish(topic, body, attributes)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Call the emulator's REST API as a bystander."""
        url = f"http://{self.host}/v1/projects/{self.project}/{path}"
        answer = requests.request(method, url, json=body, timeout=PATIENCE_S)
        answer.raise_for_status()
        return answer.json()

    def pull(self, subscription: str) -> list[dict[str, Any]]:
        path, body = f"subscriptions/{subscription}:pull", {"maxMessages": 10, "returnImmediately": True}
        return [each["message"] for each in self.ask("POST", path, body).get("receivedMessages", [])]


@pytest.fixture
def function() -> Iterator[Function]:
    function = Function()
    with serve(function.handle) as server:
        function.url = server.url
        yield function


@pytest.fixture
def place(pubsub_emulator: str) -> Iterator[Place]:
    project = f"test-{uuid.uuid4().hex[:12]}"
    there = EmulatedPubSub(pubsub_emulator, project)
    yield Place(there, project, pubsub_emulator)
    there.close()


def eventually(look: Callable[[], Any], *, every_s: float = 0.05) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(every_s)
    return found


def pushing(function: Function, **more: Any) -> Subscription:
    return Subscription(name="submit-push", topic="submit", endpoint=f"{function.url}/on_submit/", **more)


def test_a_message_is_pushed_whole(place, function):
    place.there.make(["submit"], [pushing(function)])
    message_id = place.publish(b"yes", color="blue")
    (push,) = eventually(lambda: function.got)
    message = push["message"]
    assert (base64.b64decode(message["data"]), message["attributes"]) == (b"yes", {"color": "blue"})
    assert message["messageId"] == message_id
    assert message["publishTime"].endswith("Z")


def test_a_message_that_is_refused_again_and_again_comes_slower_and_ends_as_a_dead_letter(place, function):
    stubborn = pushing(
        function,
        min_backoff=timedelta(seconds=0.5),
        max_backoff=timedelta(seconds=1.5),
        dead_letter_topic="dead",
        max_attempts=5,
    )
    place.there.make(["submit", "dead"], [stubborn, Subscription(name="dead-pull", topic="dead")])
    place.publish(b"no", color="blue")
    # Not sooner than its last delivery, and each look is a call.
    eventually(lambda: len(function.tried_at) == 5)
    (letter,) = eventually(lambda: place.pull("dead-pull"), every_s=0.25)
    assert base64.b64decode(letter["data"]) == b"no"
    assert letter["attributes"]["color"] == "blue"
    assert len(function.tried_at) == 5
    first, *_, last = function.tried_at
    assert last - first >= 4, "not in a tight loop"


def test_all_of_the_planes_topics_are_taken_within_pubsubs_own_bounds(place, function):
    settings = Settings.from_env(SETTINGS)
    topics, subscriptions = plane_topics(settings), plane_subscriptions(settings, function.url)
    place.there.make(topics, subscriptions)

    made = {each["name"].rpartition("/")[2] for each in place.ask("GET", "topics")["topics"]}
    assert made == set(topics)
    by_name = {
        each["name"].rpartition("/")[2]: each for each in place.ask("GET", "subscriptions")["subscriptions"]
    }
    assert by_name.keys() == {each.name for each in subscriptions}
    submit, tick = by_name["sf-submit-push"], by_name["sf-tick-push"]
    assert submit["pushConfig"] == {"pushEndpoint": f"{function.url}/on_submit/"}
    assert submit["ackDeadlineSeconds"] == 30
    assert submit["deadLetterPolicy"] == {
        "deadLetterTopic": f"projects/{place.project}/topics/sf-dead-letter",
        "maxDeliveryAttempts": 10,
    }
    assert submit["retryPolicy"] == {"minimumBackoff": "1s", "maximumBackoff": "30s"}
    assert tick["messageRetentionDuration"] == "600s"
    assert "deadLetterPolicy" not in tick
    assert not by_name["sf-dead-letter-pull"].get("pushConfig")


def test_what_an_earlier_cloud_left_is_replaced(place, function):
    topics, subscriptions = ["submit"], [Subscription(name="submit-push", topic="submit")]
    place.there.make(topics, subscriptions)
    place.publish(b"old")
    place.there.make(topics, [pushing(function)])
    place.publish(b"new")
    eventually(lambda: function.got)
    place.there.remove(topics, subscriptions)
    assert [base64.b64decode(each["message"]["data"]) for each in function.got] == [b"new"]
    assert json.dumps(place.ask("GET", "topics")) == "{}"

"""Publishing, as Google's Pub/Sub emulator sees it."""

from __future__ import annotations

import json
import urllib.request
import uuid
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runtender.errors import Rejected, Retryable
from runtender.gcp.pubsub import PubSubTopics
from runtender.ports import Topics

pytestmark = pytest.mark.emulator("pubsub")


@pytest.fixture
def project() -> str:
    return f"projects/test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def ask(pubsub_emulator, project) -> Callable[..., Any]:
    """Call the emulator's REST API as a bystander."""

    def ask(verb: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            f"http://{pubsub_emulator}/v1/{project}/{path}",
            method=verb,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    ask("PUT", "topics/sf-notify")
    ask("PUT", "subscriptions/reader", {"topic": f"{project}/topics/sf-notify"})
    return ask


@pytest.fixture
def topics(pubsub_emulator, project, monkeypatch) -> Iterator[Topics]:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
    topics = PubSubTopics(project.removeprefix("projects/"))
    yield topics
    topics.close()


@pytest.mark.parametrize("name", ["sf-notify", "{project}/topics/sf-notify"])
def test_a_published_message_arrives_whole_under_the_id_that_was_returned(ask, project, topics, name):
    # Names that a client taking attributes as keywords would trip over.
    attributes = {"topic": "x", "data": "y", "run-id": "ü"}
    message_id = topics.publish(name.format(project=project), b'{"a": 1}\x00', attributes)
    pulled = ask("POST", "subscriptions/reader:pull", {"maxMessages": 10})["receivedMessages"]
    (message,) = [received["message"] for received in pulled]
    assert b64decode(message["data"]) == b'{"a": 1}\x00'
    assert (message["attributes"], message["messageId"]) == (attributes, message_id)


def test_a_message_for_a_topic_that_is_not_there_was_not_taken(topics):
    with pytest.raises(Retryable, match=r"topics/nowhere: the message was not taken"):
        topics.publish("nowhere", b"x", {})


def test_a_message_that_pubsub_does_not_take_is_rejected(ask, topics):
    with pytest.raises(Rejected, match="topics/sf-notify: Pub/Sub does not take the message"):
        topics.publish("sf-notify", b"", {})

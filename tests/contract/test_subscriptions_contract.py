"""What every reading side of Pub/Sub does, run on the embedded dispatcher and on Google's Pub/Sub emulator."""

from __future__ import annotations

import json
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from runtender.errors import Rejected, Retryable
from runtender.gcp.pubsub import PubSubTopics
from runtender.gcp.subscriptions import PubSubSubscriptions
from runtender.local.publisher import EmbeddedTopics
from runtender.local.subscriber import EmbeddedSubscriptions
from runtender.local.topics import Subscription, TopicsCore, TopicsServer
from runtender.ports import Held, Subscriptions, Topics

READER = "sf-dead-letter-pull"
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Mail:
    """A topic with one reader, from both sides."""

    topics: Topics
    subscriptions: Subscriptions

    def send(self, *bodies: bytes) -> list[str]:
        return [self.topics.publish("sf-dead-letter", body, {"n": str(n)}) for n, body in enumerate(bodies)]

    def receive(self, count: int) -> list[Held]:
        """Pull until so many have come: the service may bring them one by one."""
        held: list[Held] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(held) < count and time.monotonic() < deadline:
            held += self.subscriptions.pull(READER, count - len(held))
        return sorted(held, key=lambda each: each.attributes["n"])


@pytest.fixture(params=["embedded", pytest.param("google", marks=pytest.mark.emulator("pubsub"))])
def mail(request, monkeypatch) -> Iterator[Mail]:
    if request.param == "embedded":
        reader = Subscription(name=READER, topic="sf-dead-letter", min_backoff=timedelta(0))
        core = TopicsCore(project="p", topics=["sf-dead-letter"], subscriptions=[reader])
        with TopicsServer(core) as server:
            yield Mail(EmbeddedTopics(server.url, "p"), EmbeddedSubscriptions(server.url, "p"))
        return
    host = request.getfixturevalue("pubsub_emulator")
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", host)
    project = f"test-{uuid.uuid4().hex[:12]}"
    for path, body in (
        ("topics/sf-dead-letter", {}),
        (f"subscriptions/{READER}", {"topic": f"projects/{project}/topics/sf-dead-letter"}),
    ):
        made = urllib.request.Request(
            f"http://{host}/v1/projects/{project}/{path}",
            method="PUT",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(made, timeout=10).close()
    topics, subscriptions = PubSubTopics(project), PubSubSubscriptions(project)
    yield Mail(topics, subscriptions)
    topics.close()
    subscriptions.close()


def test_what_was_published_is_pulled_whole(mail):
    before = datetime.now(UTC)
    ids = mail.send(b"\x00a", b'{"b": 1}')
    held = mail.receive(2)

    assert [(each.message_id, each.body, each.attributes) for each in held] == [
        (ids[0], b"\x00a", {"n": "0"}),
        (ids[1], b'{"b": 1}', {"n": "1"}),
    ]
    assert all(abs(each.published_at - before) < timedelta(minutes=1) for each in held)


def test_nothing_waiting_is_an_empty_pull(mail):
    assert mail.subscriptions.pull(READER, 10) == []


def test_what_is_held_is_nobody_elses(mail):
    mail.send(b"a")
    mail.receive(1)

    assert mail.subscriptions.pull(READER, 10) == []


def test_what_is_released_is_there_for_the_next_pull(mail):
    (sent,) = mail.send(b"a")
    (held,) = mail.receive(1)
    mail.subscriptions.release(READER, [held.ack_id])
    (again,) = mail.receive(1)

    assert (again.message_id, again.body) == (sent, b"a")


def test_what_is_acknowledged_is_gone(mail):
    mail.send(b"a", b"b")
    first, second = mail.receive(2)
    mail.subscriptions.acknowledge(READER, [first.ack_id])
    mail.subscriptions.release(READER, [second.ack_id])

    assert [each.body for each in mail.receive(1)] == [b"b"]
    assert mail.subscriptions.pull(READER, 10) == []


@pytest.mark.parametrize(("topic", "there"), [("sf-dead-letter", True), ("nowhere", False)])
def test_a_topic_is_there_or_not(mail, topic, there):
    assert mail.subscriptions.has_topic(topic) is there


_CALLS: dict[str, Callable[[Subscriptions], object]] = {
    "pull": lambda subscriptions: subscriptions.pull("nowhere", 1),
    "acknowledge": lambda subscriptions: subscriptions.acknowledge("nowhere", ["x"]),
    "release": lambda subscriptions: subscriptions.release("nowhere", ["x"]),
}


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
def test_a_subscription_that_is_not_there_is_named(mail, call):
    with pytest.raises(Rejected, match="nowhere"):
        call(mail.subscriptions)


@pytest.mark.parametrize("kind", ["embedded", "google"])
def test_a_service_that_does_not_answer_may_do_so_later(kind, monkeypatch):
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1")
    if kind == "embedded":
        with pytest.raises(Retryable):
            EmbeddedSubscriptions("http://127.0.0.1:1", "p").pull(READER, 1)
        return
    google = PubSubSubscriptions("p", patience=timedelta(seconds=0.5))
    with pytest.raises(Retryable):
        google.acknowledge(READER, ["x"])
    google.close()

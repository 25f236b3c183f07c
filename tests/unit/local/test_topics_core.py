"""Delivery's rules, with a clock that the test holds: at least once, back-off, dead letters, retention."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from runtender.local.topics import (
    Delivery,
    Message,
    Subscription,
    TopicsCore,
    plane_subscriptions,
    plane_topics,
    push_body,
)
from runtender.local.topics.core import MAX_MESSAGE_BYTES, UnknownName, Unpublishable
from runtender.settings import Settings

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SUBMIT = Subscription(
    name="submit-push", topic="submit", endpoint="http://f/on_submit/", dead_letter_topic="dead"
)
DEAD = Subscription(name="dead-pull", topic="dead")


def a_core(*subscriptions: Subscription, **more) -> TopicsCore:
    topics = ("submit", "tick", "dead")
    return TopicsCore(project="demo", topics=topics, subscriptions=subscriptions or (SUBMIT, DEAD), **more)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def fail(core: TopicsCore, now: datetime) -> Delivery:
    """Fail the one delivery that is due."""
    [due] = core.due(now)
    begun = core.begin(due, now)
    assert core.nack(begun.ack_id, now)
    return begun


def test_a_message_is_due_until_it_is_acknowledged():
    core = a_core()
    message_id = core.publish("submit", b"run", {"k": "v"}, NOW)
    [due] = core.due(NOW)
    message = Message(id=message_id, topic="submit", body=b"run", attributes={"k": "v"}, published_at=NOW)
    assert (due.message, due.subscription, due.attempt) == (message, SUBMIT, 1)

    begun = core.begin(due, NOW)
    assert core.due(NOW) == []
    assert core.ack(begun.ack_id)
    assert core.due(after(86400)) == []
    assert core.counts()["subscriptions"]["submit-push"]["delivered"] == 1


def test_each_subscription_of_a_topic_gets_its_copy():
    other = Subscription(name="copy", topic="submit")
    core = a_core(SUBMIT, DEAD, other)
    core.publish("submit", b"run", {}, NOW)
    assert [due.subscription.name for due in core.due(NOW)] == ["submit-push", "copy"]


def test_a_failed_delivery_comes_back_after_a_doubling_wait_and_then_is_a_dead_letter():
    core = a_core()
    core.publish("submit", b"run", {"k": "v"}, NOW)
    moment, waits = NOW, []
    for attempt in range(1, 11):
        assert fail(core, moment).attempt == attempt
        failed_at, moment = moment, core.next_change() or moment
        waits.append((moment - failed_at).total_seconds())
        assert core.due(moment - timedelta(microseconds=1)) == [] or attempt == 10
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600, 600, 0]

    [letter] = core.waiting("dead-pull")
    assert letter.body == b"run"
    assert letter.attributes == {
        "k": "v",
        "CloudPubSubDeadLetterSourceDeliveryCount": "10",
        "CloudPubSubDeadLetterSourceSubscription": "submit-push",
        "CloudPubSubDeadLetterSourceSubscriptionProject": "demo",
        "CloudPubSubDeadLetterSourceTopicPublishTime": "2026-01-02T03:04:05.000+00:00",
    }
    assert core.counts()["subscriptions"]["submit-push"] == {
        "delivered": 0,
        "failed": 10,
        "dead_lettered": 1,
        "expired": 0,
    }


def test_a_dead_letter_nobody_subscribes_to_is_lost():
    core = a_core(Subscription(name="s", topic="submit", dead_letter_topic="dead", max_attempts=1))
    core.publish("submit", b"run", {}, NOW)
    fail(core, NOW)
    assert core.due(after(3600)) == []


def test_a_dead_letter_of_full_size_is_kept():
    core = a_core(Subscription(name="s", topic="submit", dead_letter_topic="dead", max_attempts=1), DEAD)
    core.publish("submit", b"x" * MAX_MESSAGE_BYTES, {}, NOW)
    fail(core, NOW)
    assert len(core.waiting("dead-pull")) == 1


def test_an_unanswered_delivery_comes_again_and_its_late_answer_counts_for_nothing():
    core = a_core()
    core.publish("submit", b"run", {}, NOW)
    [due] = core.due(NOW)
    first = core.begin(due, NOW)
    assert core.due(after(599)) == []
    assert core.due(after(600)) == []
    [again] = core.due(after(610))
    assert again.attempt == 2
    second = core.begin(again, after(610))
    assert not core.ack(first.ack_id)
    assert not core.nack(first.ack_id, after(611))
    assert core.ack(second.ack_id)


def test_an_offer_can_be_taken_once():
    core = a_core()
    core.publish("submit", b"run", {}, NOW)
    [due] = core.due(NOW)
    begun = core.begin(due, NOW)
    for taken in (due, begun):
        with pytest.raises(UnknownName):
            core.begin(taken, NOW)


def test_a_message_without_dead_letters_is_tried_until_its_retention_ends():
    ticks = Subscription(name="tick-push", topic="tick", retention=timedelta(seconds=600))
    core = a_core(ticks)
    core.publish("tick", b"t", {}, NOW)
    for second in (0, 10, 30, 70, 150, 310):
        fail(core, after(second))
    assert len(core.waiting("tick-push")) == 1
    assert core.due(after(630)) == []
    assert core.waiting("tick-push") == ()
    assert core.counts()["subscriptions"]["tick-push"]["expired"] == 1


@pytest.mark.parametrize(
    ("delays", "seen_at"),
    [
        pytest.param([], [], id="lost"),
        pytest.param([0, 0], [0, 0], id="doubled"),
        pytest.param([300], [300], id="late"),
        pytest.param([0, 300], [0, 300], id="doubled, once late"),
    ],
)
def test_arrivals_decide_how_a_message_comes_in(delays, seen_at):
    def arrivals(_subscription: Subscription, _message: Message) -> Sequence[timedelta]:
        return [timedelta(seconds=delay) for delay in delays]

    core = a_core(SUBMIT, arrivals=arrivals)
    core.publish("submit", b"run", {}, NOW)
    seen = []
    for second in (0, 299, 300):
        for due in core.due(after(second)):
            seen.append(second)
            core.ack(core.begin(due, after(second)).ack_id)
    assert seen == seen_at


def test_due_messages_may_be_taken_in_any_order():
    core = a_core()
    for body in (b"1", b"2", b"3"):
        core.publish("submit", body, {}, NOW)
    offered = core.due(NOW)
    assert [due.message.body for due in offered] == [b"1", b"2", b"3"]
    for due in reversed(offered):
        core.ack(core.begin(due, NOW).ack_id)
    assert core.due(NOW) == []


def test_message_ids_never_repeat_within_a_moment_or_over_a_restart():
    first = a_core()
    ids = [int(first.publish("submit", b"x", {}, NOW)) for _ in range(3)]
    ids.append(int(a_core().publish("submit", b"x", {}, after(1))))
    assert ids == sorted(set(ids))


@pytest.mark.parametrize(
    ("body", "attributes"),
    [
        pytest.param(b"", {}, id="empty"),
        pytest.param(b"x" * (MAX_MESSAGE_BYTES + 1), {}, id="too large"),
        pytest.param(b"x", {"k": "v" * 1025}, id="attribute too long"),
        pytest.param(b"x", {str(n): "v" for n in range(101)}, id="too many attributes"),
    ],
)
def test_what_pubsub_does_not_take_is_not_taken(body, attributes):
    core = a_core()
    with pytest.raises(Unpublishable):
        core.publish("submit", body, attributes, NOW)
    assert core.due(NOW) == []


def test_unknown_names_are_refused():
    core = a_core()
    with pytest.raises(UnknownName):
        core.publish("elsewhere", b"x", {}, NOW)
    with pytest.raises(UnknownName):
        core.due(NOW, "elsewhere")
    with pytest.raises(UnknownName):
        a_core(Subscription(name="s", topic="elsewhere"))


def test_a_push_carries_the_classic_body():
    core = a_core()
    core.publish("submit", b"run", {"k": "v"}, NOW)
    [due] = core.due(NOW)
    message_id = due.message.id
    assert push_body(due, "demo") == {
        "message": {
            "data": "cnVu",
            "attributes": {"k": "v"},
            "messageId": message_id,
            "message_id": message_id,
            "publishTime": "2026-01-02T03:04:05.000000Z",
            "publish_time": "2026-01-02T03:04:05.000000Z",
        },
        "subscription": "projects/demo/subscriptions/submit-push",
        "deliveryAttempt": 1,
    }


def test_the_planes_subscriptions_follow_the_time_scale():
    settings = Settings(
        project="demo", code_bucket="code", status_bucket="code", cells_prefix="gs://code/a", time_scale=20
    )
    subscriptions = {s.name: s for s in plane_subscriptions(settings, "http://127.0.0.1:1/")}
    submit, tick = subscriptions["sf-submit-push"], subscriptions["sf-tick-push"]
    assert submit == Subscription(
        name="sf-submit-push",
        topic="sf-submit",
        endpoint="http://127.0.0.1:1/on_submit/",
        ack_deadline=timedelta(seconds=30),
        min_backoff=timedelta(seconds=0.5),
        max_backoff=timedelta(seconds=30),
        retention=timedelta(days=7) / 20,
        dead_letter_topic="sf-dead-letter",
    )
    assert (tick.retention, tick.dead_letter_topic) == (timedelta(seconds=30), None)
    assert {s.topic for s in subscriptions.values()} == set(plane_topics(settings))
    assert {s.name for s in subscriptions.values() if s.endpoint is None} == {
        "sf-dead-letter-pull",
        "sf-notify-pull",
    }

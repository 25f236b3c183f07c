"""`dead-letters`: looked at they stay; sent again or thrown away they go, and nothing is lost on the way."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from runtender.errors import Retryable

REJECTED = {"request_id": "r-1", "message_id": "7", "reason": "models[0]: is not a known model"}
FAILED = {
    "CloudPubSubDeadLetterSourceSubscription": "sf-marker-push",
    "CloudPubSubDeadLetterSourceDeliveryCount": "10",
    "objectId": "runs/status/x",
}


@pytest.fixture
def dead(dispatcher):
    """Put a dead letter into the topic; return its id."""

    def put(body=b'{"request_id": "r-1", "config": {}}', attributes=REJECTED):
        return dispatcher.publish("sf-dead-letter", body, attributes, datetime.now(UTC))

    return put


@pytest.fixture
def waiting(dispatcher):
    return lambda: [message.id for message in dispatcher.waiting("sf-dead-letter-pull")]


@pytest.fixture
def sent(mailbox):
    """What was published to any topic, and with which attributes."""
    found = []

    class Topics:
        def publish(self, topic, body, attributes):
            found.append((topic, body, dict(attributes)))
            return f"new-{len(found)}"

    return Topics(), found


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_list_tells_why_and_takes_nothing(runtender, dead, waiting, parsed, form):
    ids = [dead(), dead(b"\x00", FAILED)]
    for _ in range(2):
        listed = parsed(runtender("dead-letters", "list", "--format", form), form, "dead_letters")[
            "dead_letters"
        ]
        assert [(each["id"], each["topic"], each["request_id"], each["reason"]) for each in listed] == [
            (ids[0], "sf-submit", "r-1", REJECTED["reason"]),
            (ids[1], "sf-marker", None, "not taken in 10 tries by sf-marker-push"),
        ]
    assert waiting() == ids


def test_an_empty_list_is_said_to_be_one(runtender, parsed):
    result = runtender("dead-letters", "list", "--format", "json")

    assert parsed(result, "json", "dead_letters") == {"dead_letters": []}
    assert result.stderr == "no dead letters\n"


def test_more_than_one_pull_brings_are_all_listed(runtender, dead, waiting, parsed):
    ids = [dead() for _ in range(120)]
    listed = parsed(runtender("dead-letters", "list", "--format", "json"), "json", "dead_letters")

    assert [each["id"] for each in listed["dead_letters"]] == ids == waiting()


def test_one_is_shown_with_all_that_was_in_it(runtender, dead, waiting, parsed):
    dead()
    letter = dead(b'{"a": "\\u001b[31m"}')
    document = parsed(runtender("dead-letters", "show", letter, "--format", "json"), "json", "dead_letter")
    shown = runtender("dead-letters", "show", letter).stdout

    assert (document["id"], document["body"], document["size_bytes"]) == (letter, '{"a": "\\u001b[31m"}', 19)
    assert '"a": "\\u001b[31m"' in shown
    assert "\x1b" not in shown
    assert len(waiting()) == 2


def test_what_is_no_text_is_shown_without_steering_the_terminal(runtender, dead):
    assert "\x1b" not in runtender("dead-letters", "show", dead(b"\xff\x1b[2J\x00")).stdout


def test_a_rejected_request_goes_out_again_under_an_id_of_its_own(runtender, dead, waiting, sent, parsed):
    topics, found = sent
    letter = dead()
    result = runtender("dead-letters", "redrive", letter, "--format", "json", topics=topics)

    assert parsed(result, "json", "redriven")["redriven"] == [
        {"id": letter, "topic": "sf-submit", "message_id": "new-1", "request_id": f"redrive-{letter}"}
    ]
    ((topic, body, attributes),) = found
    assert (topic, json.loads(body)) == ("sf-submit", {"request_id": f"redrive-{letter}", "config": {}})
    assert attributes == {"redriven_from": letter}
    assert waiting() == []


_AS_THEY_ARE = {
    "no JSON, rejected": (b"{", REJECTED, "sf-submit", {}),
    "no object, rejected": (b"[1]", REJECTED, "sf-submit", {}),
    "a marker's event": (b"{}", FAILED, "sf-marker", {"objectId": "runs/status/x"}),
    "a submit that no function took": (
        b'{"request_id": "r-1"}',
        {"CloudPubSubDeadLetterSourceSubscription": "sf-submit-push"},
        "sf-submit",
        {},
    ),
}


@pytest.mark.parametrize(("body", "attributes", "topic", "kept"), _AS_THEY_ARE.values(), ids=_AS_THEY_ARE)
def test_others_go_out_as_they_are(runtender, dead, sent, body, attributes, topic, kept):
    topics, found = sent
    letter = dead(body, attributes)
    assert runtender("dead-letters", "redrive", "--all", topics=topics).exit_code == 0

    assert found == [(topic, body, {**kept, "redriven_from": letter})]


def test_what_is_not_of_this_plane_is_left_where_it_is(runtender, dead, waiting, sent):
    letter = dead(b"x", {"CloudPubSubDeadLetterSourceSubscription": "orders-push"})
    topics, found = sent
    result = runtender("dead-letters", "redrive", "--all", topics=topics)

    assert result.exit_code == 1
    assert "is not from a topic of this plane" in result.stderr
    assert (found, waiting()) == ([], [letter])


def test_what_could_not_be_sent_is_not_lost(runtender, dead, waiting):
    class Down:
        def publish(self, *_message):
            raise Retryable("the topic does not answer")

    letter = dead()
    result = runtender("dead-letters", "redrive", "--all", topics=Down())

    assert result.exit_code == 1
    assert waiting() == [letter]


def test_the_plane_takes_a_redriven_request_in_once_its_fault_is_mended(
    runtender, intake, objects, flights, dead, store
):
    config = json.loads(flights.read_text())
    body = json.dumps({"request_id": "r-1", "config": config}).encode()
    panel = objects.read("demo-warehouse", "panels/flights.csv.gz", limit=10_000_000)
    objects.put("demo-warehouse", "panels/flights.csv.gz", b"")
    intake.publish("sf-submit", body, {})
    (row,) = store.find("requests")
    assert row.data["state"] == "rejected"
    letter = dead(body, {**REJECTED, "reason": row.data["errors"][0]})
    objects.put("demo-warehouse", "panels/flights.csv.gz", panel)
    runtender("dead-letters", "redrive", letter, topics=intake)

    assert {row.data["request_id"]: row.data["state"] for row in store.find("requests")} == {
        "r-1": "rejected",
        f"redrive-{letter}": "accepted",
    }


def test_what_is_thrown_away_is_gone(runtender, dead, waiting, parsed):
    first, second, third = (dead() for _ in range(3))
    one = runtender("dead-letters", "discard", second, "--yes", "--format", "json")
    assert parsed(one, "json", "discarded") == {"discarded": [second]}
    assert waiting() == [first, third]
    assert runtender("dead-letters", "discard", "--all", input="y\n").exit_code == 0
    assert waiting() == []


def test_nothing_is_thrown_away_without_a_yes(runtender, dead, waiting):
    letter = dead()
    result = runtender("dead-letters", "discard", letter, input="n\n")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert waiting() == [letter]


@pytest.mark.parametrize("verb", ["redrive", "discard"])
@pytest.mark.parametrize("arguments", [(), ("1", "--all")], ids=["none", "both"])
def test_it_must_be_said_which(runtender, verb, arguments):
    assert runtender("dead-letters", verb, *arguments).exit_code == 2


@pytest.mark.parametrize("verb", ["show", "redrive", "discard"])
def test_one_that_is_not_there_is_an_error_and_takes_nothing(runtender, dead, waiting, verb):
    letter = dead()
    result = runtender("dead-letters", verb, "99")

    assert result.exit_code == 1
    assert "there is no dead letter 99" in result.stderr
    assert waiting() == [letter]

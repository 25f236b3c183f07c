"""Every way an event may come in, and what never becomes an error."""

from __future__ import annotations

import json

import pytest

from runtender.wire.envelope import read_delivery

DATA = {"message": {"data": "e30=", "messageId": "7"}}
BODY = json.dumps(DATA).encode()
PUSHED = "google.cloud.pubsub.topic.v1.messagePublished"


def test_a_classic_push_is_its_body():
    delivery = read_delivery({"Content-Type": "application/json"}, BODY)
    assert delivery.data == DATA
    with pytest.raises(KeyError):
        delivery["type"]


def test_a_push_without_data_is_one_all_the_same():
    body = {"message": {"attributes": {"a": "b"}, "messageId": "7"}, "subscription": "s"}
    assert read_delivery({}, json.dumps(body).encode()).data == body


def test_a_binary_cloud_event_has_its_attributes_in_headers_of_any_case():
    delivery = read_delivery({"CE-Type": PUSHED, "ce-id": "9", "Content-Type": "application/json"}, BODY)
    assert (delivery["type"], delivery["id"], delivery.data) == (PUSHED, "9", DATA)


def test_a_structured_cloud_event_has_them_in_its_body():
    body = json.dumps({"type": PUSHED, "id": "9", "specversion": "1.0", "data": DATA}).encode()
    delivery = read_delivery({"Content-Type": "application/cloudevents+json; charset=utf-8"}, body)
    assert (delivery["type"], delivery["id"], delivery.data) == (PUSHED, "9", DATA)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"submit", id="no JSON"),
        pytest.param(b"\xff\xfe{", id="no UTF-8"),
        pytest.param(b"[" * 100_000, id="nested without end"),
    ],
)
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="push"),
        pytest.param({"ce-type": PUSHED}, id="binary"),
        pytest.param({"content-type": "application/cloudevents+json"}, id="structured"),
    ],
)
def test_a_body_that_cannot_be_read_is_an_event_without_data(headers, body):
    assert read_delivery(headers, body).data is None


TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize(
    ("headers", "body", "event_id"),
    [
        ({"ce-id": "9", "ce-type": PUSHED}, BODY, "9"),
        ({}, BODY, "7"),
        ({}, json.dumps({"message": {"message_id": "8"}}).encode(), "8"),
        ({}, b"[]", ""),
        ({}, b"{", ""),
    ],
    ids=["of the CloudEvent", "of the message", "in its other spelling", "no event", "no JSON"],
)
def test_an_event_has_an_id(headers, body, event_id):
    assert read_delivery(headers, body).event_id == event_id


@pytest.mark.parametrize(
    ("headers", "trace_id"),
    [
        ({"Traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}, TRACE),
        ({"X-Cloud-Trace-Context": f"{TRACE.upper()}/123;o=1"}, TRACE),
        ({"X-Cloud-Trace-Context": TRACE}, TRACE),
        ({"ce-traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}, TRACE),
        ({"traceparent": "00-short-b7ad6b7169203331-01"}, "7"),
        ({"traceparent": f"00-{TRACE}"}, "7"),
        ({}, "7"),
    ],
    ids=["W3C", "Google", "Google, trace only", "in the event", "no trace", "cut", "none"],
)
def test_an_event_has_the_trace_of_its_request_else_its_own_id(headers, trace_id):
    assert read_delivery(headers, BODY).trace_id == trace_id

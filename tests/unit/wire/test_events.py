"""What is missing in an event is made up for, and two messages never share what was made up."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

from runtender.wire.envelope import Delivery
from runtender.wire.events import read_message

AT = datetime(2026, 1, 1, tzinfo=UTC)


def push(body, **message):
    return Delivery({}, {"message": {"data": base64.b64encode(body).decode(), **message}})


def test_pubsubs_own_id_and_time_are_taken():
    read = read_message(push(b"{}", messageId="7", publishTime="2026-01-02T03:04:05.678Z"), AT)
    assert (read.body, read.message_id) == (b"{}", "7")
    assert read.published_at == datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def test_messages_without_an_id_are_told_apart_by_what_they_say():
    first, again, other = (read_message(push(body), AT).message_id for body in (b"{}", b"{}", b'{"a": 1}'))
    assert first == again
    assert first != other
    assert first

"""The REST face of the simulated Pub/Sub: publish, pull and answer what was pulled, in Google's shapes."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from runtender.local.http import Faults, HttpRequest, HttpResponse, google_error, json_response, no_faults
from runtender.local.topics.core import (
    MAX_MESSAGE_BYTES,
    TopicsCore,
    UnknownName,
    Unpublishable,
    check_message,
)
from runtender.local.topics.messages import Delivery

_PUBLISH, _GET_TOPIC, _PULL, _ACKNOWLEDGE, _MODIFY_ACK_DEADLINE = METHODS = (
    "pubsub.topics.publish",
    "pubsub.topics.get",
    "pubsub.subscriptions.pull",
    "pubsub.subscriptions.acknowledge",
    "pubsub.subscriptions.modifyAckDeadline",
)
"""The ids of the methods that are simulated."""

# As Pub/Sub's own limit of one publish request.
_MAX_REQUEST_BYTES = MAX_MESSAGE_BYTES * 4 // 3 + 1_000_000
_MOST_PULLED = 1000
_LONGEST_ACK_DEADLINE_S = 600
_PATH = re.compile(
    r"/v1/projects/(?P<project>[^/]+)/(?P<kind>topics|subscriptions)/(?P<name>[^/:]+)(?P<verb>:\w+)?"
)


class TopicsApi:
    """Answers REST calls from a core. `faults` sees each with its method id (`pubsub.topics.publish`)."""

    def __init__(self, core: TopicsCore, faults: Faults = no_faults) -> None:
        self._core = core
        self._faults = faults
        self._methods = {
            "POST topics:publish": (_PUBLISH, self._publish),
            "GET topics": (_GET_TOPIC, self._get_topic),
            "POST subscriptions:pull": (_PULL, self._pull),
            "POST subscriptions:acknowledge": (_ACKNOWLEDGE, self._acknowledge),
            "POST subscriptions:modifyAckDeadline": (_MODIFY_ACK_DEADLINE, self._modify_ack_deadline),
        }

    def handle(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer one call."""
        match = _PATH.fullmatch(request.path)
        key = f"{request.method} {match['kind']}{match['verb'] or ''}" if match else ""
        method = self._methods.get(key)
        if match is None or method is None:
            return _error(404, "NOT_FOUND", f"no method at {request.method} {request.path}")
        method_id, call = method
        fault = self._faults(method_id, request)
        if fault is not None and not fault.applied:
            return fault.answer
        try:
            document = _document(request) if request.method == "POST" else {}
            answer = call(match["name"], document, now)
        except UnknownName as unknown:
            answer = _error(404, "NOT_FOUND", f"Resource not found (resource={unknown}).")
        except Unpublishable as problem:
            answer = _error(400, "INVALID_ARGUMENT", str(problem))
        return fault.answer if fault is not None else answer

    def _publish(self, topic: str, document: Mapping[str, Any], now: datetime) -> HttpResponse:
        messages = [_message(message) for message in _list(document, "messages")]
        if not messages:
            raise Unpublishable("The value for message_count is too small. You passed 0 in the request.")
        # All or none: a batch with one bad message is refused whole.
        for body, attributes in messages:
            check_message(body, attributes)
        ids = [self._core.publish(topic, body, attributes, now) for body, attributes in messages]
        return json_response(200, {"messageIds": ids})

    def _get_topic(self, topic: str, _document: Mapping[str, Any], _now: datetime) -> HttpResponse:
        self._core.check_topic(topic)
        return json_response(200, {"name": f"projects/{self._core.project}/topics/{topic}"})

    def _pull(self, subscription: str, document: Mapping[str, Any], now: datetime) -> HttpResponse:
        limit = document.get("maxMessages", 0)
        if not isinstance(limit, int) or limit < 1:
            raise Unpublishable(f"Invalid maxMessages: {limit!r}.")
        pulled = self._core.pull(subscription, min(limit, _MOST_PULLED), now)
        return json_response(200, {"receivedMessages": [_received(one) for one in pulled]} if pulled else {})

    def _acknowledge(self, subscription: str, document: Mapping[str, Any], now: datetime) -> HttpResponse:
        # Reading it also refuses a subscription that is not there.
        self._core.due(now, subscription)
        for ack_id in _list(document, "ackIds"):
            self._core.ack(str(ack_id))
        return json_response(200, {})

    def _modify_ack_deadline(
        self, subscription: str, document: Mapping[str, Any], now: datetime
    ) -> HttpResponse:
        seconds = document.get("ackDeadlineSeconds", 0)
        if not isinstance(seconds, int) or not 0 <= seconds <= _LONGEST_ACK_DEADLINE_S:
            raise Unpublishable(f"Invalid ackDeadlineSeconds: {seconds!r}.")
        self._core.due(now, subscription)
        for ack_id in _list(document, "ackIds"):
            if seconds:
                self._core.extend(str(ack_id), now + timedelta(seconds=seconds))
            else:
                self._core.nack(str(ack_id), now)
        return json_response(200, {})


def _document(request: HttpRequest) -> Mapping[str, Any]:
    if len(request.body) > _MAX_REQUEST_BYTES:
        raise Unpublishable(f"Request payload size exceeds the limit: {_MAX_REQUEST_BYTES} bytes.")
    try:
        document = request.json()
    except ValueError as error:
        raise Unpublishable("Invalid JSON payload received.") from error
    if not isinstance(document, dict):
        raise Unpublishable("Invalid JSON payload received: not an object.")
    return document


def _list(document: Mapping[str, Any], key: str) -> list[Any]:
    value = document.get(key, [])
    if not isinstance(value, list):
        raise Unpublishable(f"Invalid value at '{key}': not a list.")
    return value


def _message(message: Any) -> tuple[bytes, dict[str, str]]:
    if not isinstance(message, dict):
        raise Unpublishable("Invalid value at 'messages': not an object.")
    try:
        body = base64.b64decode(message.get("data", ""), validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise Unpublishable("Invalid value at 'messages.data': Base64 decoding failed.") from error
    attributes = message.get("attributes", {})
    if not isinstance(attributes, dict) or not all(isinstance(value, str) for value in attributes.values()):
        raise Unpublishable("Invalid value at 'messages.attributes': values must be strings.")
    return body, attributes


def _received(delivery: Delivery) -> dict[str, Any]:
    return {"ackId": delivery.ack_id, "message": delivery.message.resource()}


def _error(status: int, word: str, message: str) -> HttpResponse:
    reason = "notFound" if status == 404 else "badRequest"
    return google_error(status, reason, message, word=word)

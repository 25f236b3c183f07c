"""The reading side of the embedded backend: the `Subscriptions` port over REST to the local dispatcher."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import requests

from runtender.errors import Rejected, Retryable
from runtender.gcp.session import HttpAnswer, HttpSession, plain_session
from runtender.ports import Held

_TIMEOUT_S = (5.0, 30.0)


class EmbeddedSubscriptions:
    """Pulls from the dispatcher at `endpoint`. A test passes a `session` that answers in process."""

    def __init__(self, endpoint: str, project: str, session: HttpSession | None = None) -> None:
        self._base = f"{endpoint.rstrip('/')}/v1/projects/{project}"
        self._session = session or plain_session()

    def pull(self, subscription: str, limit: int) -> list[Held]:
        answer = self._ask(subscription, "pull", {"maxMessages": limit})
        return [_held(received) for received in answer.get("receivedMessages", ())]

    def acknowledge(self, subscription: str, ack_ids: Sequence[str]) -> None:
        self._ask(subscription, "acknowledge", {"ackIds": [*ack_ids]})

    def release(self, subscription: str, ack_ids: Sequence[str]) -> None:
        self._ask(subscription, "modifyAckDeadline", {"ackIds": [*ack_ids], "ackDeadlineSeconds": 0})

    def has_topic(self, topic: str) -> bool:
        answer = self._send("GET", f"topics/{topic}", None)
        if answer.status_code == requests.codes.not_found:
            return False
        _check(answer, f"topic {topic!r}")
        return True

    def _ask(self, subscription: str, verb: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._send("POST", f"subscriptions/{subscription}:{verb}", body)
        _check(answer, f"subscription {subscription!r}")
        document: Mapping[str, Any] = json.loads(answer.content)
        return document

    def _send(self, verb: str, path: str, body: Mapping[str, Any] | None) -> HttpAnswer:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        try:
            return self._session.request(
                verb, f"{self._base}/{path}", data=content, headers=headers, timeout=_TIMEOUT_S
            )
        except requests.RequestException as error:
            raise Retryable(f"{path}: the dispatcher did not answer: {error}") from error


def _check(answer: HttpAnswer, what: str) -> None:
    words = f"HTTP {answer.status_code}: {answer.content[:500].decode(errors='replace')}"
    if answer.status_code in range(400, 500):
        raise Rejected.because(what, f"was refused: {words}", "see whether this is the plane that is meant")
    if answer.status_code >= 500:
        raise Retryable(f"{what}: {words}")


def _held(received: Mapping[str, Any]) -> Held:
    message = received["message"]
    return Held(
        ack_id=received["ackId"],
        message_id=message["messageId"],
        body=base64.b64decode(message.get("data", "")),
        attributes=message.get("attributes", {}),
        published_at=datetime.fromisoformat(message["publishTime"]),
    )

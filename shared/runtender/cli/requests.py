"""Asking the plane for something: a message on the submit topic, and its answer in the request's own document.

The answer is waited for only so long: the plane may be down, and the message is safe in the topic.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runtender.cli.exits import Failure, InputFailure, interrupted
from runtender.cli.world import World
from runtender.ids import request_document_id
from runtender.model import SubmitRequest
from runtender.wire.documents import request_path
from runtender.wire.messages import parse_submit

REJECTED = "rejected"

Message = Mapping[str, Any]


def read_back(world: World, message: Message) -> SubmitRequest:
    """Read a message as the plane will; raises `Rejected` with its faults."""
    return parse_submit(_body(message), message_id="", published_at=world.clock.now())


def publish(world: World, message: Message) -> None:
    """Put a message on the submit topic; raises `Retryable` when the topic did not take it."""
    world.topics.publish(world.settings.submit_topic, _body(message), {})


def answer(world: World, request_id: str) -> Mapping[str, Any]:
    """Return the document with the plane's answer to a request; `Failure` if there is none in time."""
    path = request_path(request_document_id(request_id))
    seconds = world.answer_wait.total_seconds()
    with interrupted(f"request {request_id} is published; the plane goes on with it"):
        for snapshot in world.store.watch(path, seconds):
            if snapshot is not None:
                return snapshot.data
    raise Failure(
        f"request {request_id} is published, but the plane has not answered within {seconds:.0f} s; "
        "it will as soon as its functions run"
    )


def refusal(row: Mapping[str, Any]) -> InputFailure | None:
    """Return the failure with a rejected request's errors, None for any other answer."""
    if row["state"] != REJECTED:
        return None
    return InputFailure("\n".join(row["errors"]))


def _body(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()

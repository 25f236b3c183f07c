"""Asking the plane for something: a message on the submit topic, and its answer in the request's own document.

The answer is waited for only so long: the plane may be down, and the message is safe in the topic.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from runtender.client.errors import NoAnswer
from runtender.client.records import load_run
from runtender.client.world import World
from runtender.ids import request_document_id
from runtender.model import SubmitRequest
from runtender.wire.documents import request_path, run_path
from runtender.wire.messages import parse_submit

Message = Mapping[str, Any]


class AnswerState(StrEnum):
    """What became of a request. PUBLISHED: its answer was not waited for."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"
    PUBLISHED = "published"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The plane's answer to one request. `jobs` are the run's newest job keys by family, `errors` what was wrong."""

    request_id: str
    state: AnswerState
    run_id: str | None = None
    jobs: Mapping[str, str]
    errors: tuple[str, ...] = ()


def read_back(world: World, message: Message) -> SubmitRequest:
    """Read a message as the plane will; raises `Rejected` with its faults."""
    return parse_submit(_body(message), message_id="", published_at=world.clock.now())


def publish(world: World, message: Message) -> None:
    """Put a message on the submit topic; raises `Retryable` when the topic did not take it."""
    world.topics.publish(world.settings.submit_topic, _body(message), {})


def fetch_answer(world: World, request_id: str) -> Answer:
    """Wait for the plane's answer to a request; raises `NoAnswer` if there is none in time."""
    path = request_path(request_document_id(request_id))
    seconds = world.answer_wait.total_seconds()
    for snapshot in world.store.watch(path, seconds):
        if snapshot is not None:
            return _answer(world, snapshot.data)
    raise NoAnswer(request_id, seconds)


def request_cancel(world: World, run_id: str) -> str:
    """Ask for a run's end and return the id of the request; raises `UnknownRun`."""
    return _about_run(world, run_id, {"action": "cancel"})


def request_retry(world: World, run_id: str, families: Sequence[str] = ()) -> str:
    """Ask for new attempts of what did not succeed and return the id of the request; raises `UnknownRun`."""
    return _about_run(world, run_id, {"action": "retry", **({"families": [*families]} if families else {})})


def new_request_id() -> str:
    """Draw an id that no other request has."""
    return str(uuid.uuid4())


def _about_run(world: World, run_id: str, wish: Message) -> str:
    load_run(world.store, run_id)
    request_id = new_request_id()
    publish(world, {**wish, "run_id": run_id, "request_id": request_id})
    return request_id


def _answer(world: World, row: Mapping[str, Any]) -> Answer:
    run_id = row.get("run_id")
    header = world.store.get(run_path(run_id)) if run_id else None
    families = header.data["families"] if header else {}
    return Answer(
        request_id=row["request_id"],
        state=AnswerState(row["state"]),
        run_id=run_id,
        jobs={family: entry["job_key"] for family, entry in families.items()},
        errors=tuple(row["errors"]),
    )


def _body(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()

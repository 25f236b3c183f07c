"""The plane's answers to requests, as commands wait for them and print them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from runtender.cli.exits import InputFailure, interrupted
from runtender.cli.parts import Part, facts
from runtender.client.requests import Answer, AnswerState, fetch_answer
from runtender.client.world import World


def awaited(world: World, request_id: str) -> Answer:
    """Wait for an answer; Ctrl-C leaves the request alone and says so."""
    with interrupted(f"request {request_id} is published; the plane goes on with it"):
        return fetch_answer(world, request_id)


def published(request_id: str) -> Answer:
    """Return what stands for an answer that was not waited for."""
    return Answer(request_id=request_id, state=AnswerState.PUBLISHED, jobs={})


def answer_document(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON and YAML show it."""
    return {**asdict(answer), "errors": list(answer.errors)}


def answer_parts(answers: Iterable[Answer]) -> Iterator[Part]:
    """Show answers to people."""
    for answer in answers:
        yield facts(
            [
                ("Run", answer.run_id or ""),
                ("State", answer.state),
                *(("Job", key) for key in answer.jobs.values()),
                ("Request", answer.request_id),
            ]
        )


def refusal(answers: Iterable[Answer]) -> InputFailure | None:
    """Return the failure with the errors of all that was rejected, None where nothing was."""
    rejected = [answer for answer in answers if answer.state is AnswerState.REJECTED]
    return (
        InputFailure("\n".join(error for answer in rejected for error in answer.errors)) if rejected else None
    )

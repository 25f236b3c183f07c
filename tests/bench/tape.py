"""The floor: a life's calls to the store and onto the wire, recorded once, and carried out again without the plane.

In a world as fresh as the first, on the same moments, the same calls get the same answers, which is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from requests import Response
from tests.bench.life import Life, fresh_store
from tests.bench.served import ToldSession
from tests.bench.world import ToldClock

from runtender.ports import Snapshot

BETWEEN = "between"


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call of a port, when it was made, and what it brought in short."""

    port: str
    name: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    at: datetime
    brought: object


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """The calls of one event, or of what happens between two."""

    name: str
    calls: list[Call] = field(default_factory=list)


def record(url: str, folder: Path, number: int, session: ToldSession) -> list[Part]:
    """Let a life pass; return all its calls."""
    parts = [Part(name=BETWEEN)]
    life = Life(url, folder, number, session, wrap=lambda name, port: _Taped(name, port, parts, session))
    for event, handle in life.events():
        parts.append(Part(name=event))
        handle()
        parts.append(Part(name=BETWEEN))
    life.close()
    return parts


class _Taped:
    """A port whose calls go to the last of `parts`."""

    def __init__(self, name: str, port: Any, parts: list[Part], session: ToldSession) -> None:
        self._name = name
        self._port = port
        self._parts = parts
        self._session = session

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._port, name)

        def taped(*arguments: Any, **options: Any) -> Any:
            at, answer = self._session.clock.now(), call(*arguments, **options)
            taken = Call(
                port=self._name,
                name=name,
                arguments=arguments,
                options=options,
                at=at,
                brought=in_short(answer),
            )
            self._parts[-1].calls.append(taken)
            return answer

        return taped


class Replay:
    """Carries out recorded parts, one after the other, in a world of their own."""

    def __init__(self, folder: Path, number: int, session: ToldSession) -> None:
        self._clock = ToldClock()
        session.clock, session.number = self._clock, number
        self._store = fresh_store(folder, number)
        self._ports = {"store": self._store, "wire": session}

    def prepared(self, part: Part) -> Callable[[], list[object]]:
        """Return what carries out a part and returns its answers."""
        calls = [
            (call.at, partial(getattr(self._ports[call.port], call.name), *call.arguments, **call.options))
            for call in part.calls
        ]

        def carry_out() -> list[object]:
            answers = []
            for self._clock.moment, call in calls:
                answers.append(call())
            return answers

        return carry_out

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def check(part: Part, answers: list[object]) -> None:
    """Raise unless the calls brought what they brought when they were recorded."""
    for call, answer in zip(part.calls, answers, strict=True):
        if in_short(answer) != call.brought:
            raise SystemExit(
                f"{part.name}: {call.port}.{call.name} brought {in_short(answer)}, not {call.brought}"
            )


def in_short(answer: object) -> object:
    """Return what two answers to the same call have in common."""
    match answer:
        case Response():
            return answer.status_code
        case Snapshot():
            return answer.stamp
        case list():
            return len(answer)
        case _:
            return answer

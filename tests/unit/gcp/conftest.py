"""A clock that stands still and a service that answers as it is told, on a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
import requests

from runtender.gcp.session import HttpSession
from runtender.local.http import HttpRequest, HttpResponse, serve
from runtender.ports import Clock


@dataclass
class StillClock:
    """Moves by sleeping only."""

    moment: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)
    sleeps: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.moment += timedelta(seconds=seconds)

    def token(self) -> str:
        return "token"

    def jitter(self) -> float:
        return 1.0


@dataclass
class ScriptedService:
    """Gives its answers one after the other, the last one for ever, and remembers what it was asked."""

    url: str = ""
    answers: list[HttpResponse] = field(default_factory=list)
    requests: list[HttpRequest] = field(default_factory=list)

    def handle(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def clock() -> Clock:
    return StillClock()


@pytest.fixture
def service():
    service = ScriptedService()
    with serve(service.handle) as server:
        service.url = server.url
        yield service


@pytest.fixture
def session() -> Iterator[HttpSession]:
    with requests.Session() as session:
        yield session

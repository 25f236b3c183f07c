"""A clock that stands still, a service that answers as it is told, and one that gives out tokens, on real sockets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import pytest
import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from runtender.gcp.session import HttpSession
from runtender.local.http import HttpRequest, HttpResponse, json_response, serve
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


@pytest.fixture(scope="session")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.fixture
def tokens():
    """The tokens given out so far and what they were asked for, and what the token server does instead of giving one."""
    return {"given": [], "scopes": set(), "instead": None}


@pytest.fixture
def credentials(private_key, tokens, tmp_path, monkeypatch):
    def give(request):
        if tokens["instead"] is not None:
            return tokens["instead"]
        (assertion,) = parse_qs(request.body.decode())["assertion"]
        claims = json.loads(base64.urlsafe_b64decode(assertion.split(".")[1] + "=="))
        tokens["scopes"].update(claims["scope"].split())
        tokens["given"].append(f"token-{len(tokens['given']) + 1}")
        return json_response(200, {"access_token": tokens["given"][-1], "expires_in": 3600})

    with serve(give) as server:
        account = {
            "type": "service_account",
            "client_email": "functions@p-1.iam.gserviceaccount.com",
            "private_key": private_key,
            "private_key_id": "1",
            "token_uri": f"{server.url}/token",
        }
        (tmp_path / "key.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
        yield

"""What a pod runs before its command: it reads the secrets that its environment names, and becomes the command."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtender.local.http import DROPPED, HttpRequest, HttpResponse, google_error, json_response, serve
from runtender.worker import secrets
from runtender.worker.secret_names import SCHEME
from runtender.worker.secrets import SecretManager, SecretUnavailable, resolve

VERSION = "projects/p/secrets/db/versions/7"
VALUE = "hunter2 é\nand a second line"
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"


class Service:
    """Metadata server and Secret Manager. `planned` answers come before proper ones."""

    def __init__(self) -> None:
        self.versions = {VERSION: VALUE.encode()}
        self.planned: list[HttpResponse] = []
        self.url = ""

    def answer(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith("/computeMetadata/"):
            assert request.headers["Metadata-Flavor"] == "Google"
            return json_response(200, {"access_token": "t-1", "expires_in": 3599})
        assert request.headers["Authorization"] == "Bearer t-1"
        if self.planned:
            return self.planned.pop(0)
        version = request.path.removeprefix("/v1/").removesuffix(":access")
        if version not in self.versions:
            return google_error(403, "forbidden", "no secretmanager.versions.access")
        data = base64.b64encode(self.versions[version]).decode()
        return json_response(200, {"name": version, "payload": {"data": data}})

    @property
    def environment(self) -> dict[str, str]:
        return {
            "GCE_METADATA_HOST": self.url.removeprefix("http://"),
            "SF_SECRETMANAGER_ENDPOINT": f"{self.url}/v1",
        }


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    with serve(made.answer) as server:
        made.url = server.url
        yield made


@pytest.fixture
def run(service: Service, tmp_path: Path) -> Any:
    """Run the program's text in front of a command, as a pod does."""
    text = Path(secrets.__file__).read_text()

    def start(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", text, *command],
            env={"PATH": os.environ["PATH"], **service.environment, **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return start


def test_the_command_finds_the_secrets_and_the_rest_of_its_environment(run):
    ended = run(sys.executable, "-c", SHOW, DB_PASSWORD=SCHEME + VERSION, PLAIN="seen")
    assert ended.returncode == 0, ended.stderr
    assert '"PLAIN": "seen"' in ended.stdout
    assert repr(VALUE)[1:-1].replace("é", "\\u00e9") in ended.stdout


def test_the_commands_end_is_its_own(run):
    assert run("sh", "-c", "exit 7").returncode == 7


def test_a_secret_that_may_not_be_read_starts_nothing_and_is_named(run):
    ended = run("sh", "-c", "echo started", OTHER=f"{SCHEME}projects/p/secrets/none/versions/1")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "projects/p/secrets/none/versions/1: HTTP 403" in ended.stderr


def test_nothing_is_left_on_the_disk(run, tmp_path):
    run("true", DB_PASSWORD=SCHEME + VERSION)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [google_error(503, "backendError", "busy"), google_error(429, "rateLimitExceeded", "slow"), DROPPED],
    ids=["503", "429", "no answer"],
)
def test_what_passes_is_waited_for(service, answer):
    service.planned = [answer, answer]
    pauses: list[float] = []
    assert SecretManager(service.environment, sleep=pauses.append).read(VERSION) == VALUE
    assert pauses == [1, 2]


def test_a_service_that_stays_away_is_given_up(service):
    service.planned = [google_error(503, "backendError", "busy")] * 20
    pauses: list[float] = []
    with pytest.raises(SecretUnavailable, match="HTTP 503"):
        SecretManager(service.environment, sleep=pauses.append).read(VERSION)
    assert sum(pauses) == 61


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(HttpResponse(status=200, body=b"<html>"), id="no JSON"),
        pytest.param(json_response(200, {"payload": {}}), id="no content"),
        pytest.param(json_response(200, {"payload": {"data": "/w=="}}), id="no text"),
        pytest.param(json_response(200, {"payload": "hunter2"}), id="another shape"),
    ],
)
def test_an_answer_that_is_none_is_an_error_that_repeats_nothing_of_it(service, answer):
    service.planned = [answer]
    with pytest.raises(SecretUnavailable) as error:
        SecretManager(service.environment).read(VERSION)
    assert VERSION in str(error.value)
    assert "hunter2" not in str(error.value)


def test_an_environment_without_secrets_asks_nobody():
    def read(_version: str) -> str:
        raise AssertionError("nothing is to be read")

    assert resolve({"A": "1"}, read) == {"A": "1"}

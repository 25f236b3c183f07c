"""A secret is named in the plan and read on the machine: it reaches the container, and nothing else ever holds it."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

Script = Callable[..., str]

VERSION = "projects/p/secrets/db/versions/7"
NAMED = {"DB_PASSWORD": f"secret://{VERSION}", "PLAIN": "seen"}
VALUE = "hunter2 'quoted' \"twice\" $HOME\nand a second line"
# What a container prints, and the part of it that nobody may read.
SHOUTED = {
    "an access token": ("token {}", "ya29.a0AfB_byCdefGHI-jkl"),
    "a header": ("Authorization: Bearer {}", "abc.def-123~x/y+z=="),
    "an identity token": ("got {}", "eyJhbGciOi.eyJzdWIiOi.SflKxwRJ-SM_x"),
    "an API key": ("key={}", "AIza" + "b" * 35),
    "a signed address": ("https://x/o?X-Goog-Signature={}", "5a17c0ffee"),
    "a private key": ("-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----", "MIIEvQIBADAN"),
}


@pytest.fixture
def stores_it(machine: Any) -> Any:
    machine.cloud.secrets[VERSION] = VALUE
    return machine


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, a_machine: Any, script: Script) -> Any:
    """A machine whose container has compared the secret with a digest of it, and ended."""
    digest = sha256(VALUE.encode()).hexdigest()
    line = f'[ "$(printf %s "$DB_PASSWORD" | sha256sum)" = "{digest}  -" ]'
    with a_machine(tmp_path_factory.mktemp("told")) as machine:
        machine.cloud.secrets[VERSION] = VALUE
        machine.run(script(line, env=NAMED))
    return machine


def test_the_container_has_the_secret_and_the_rest_of_its_environment(told: Any) -> None:
    assert told.cloud.terminal["status"] == "SUCCEEDED"


def test_docker_is_told_the_name_of_a_secret_and_the_value_of_what_is_none(told: Any) -> None:
    (call,) = told.called("docker run")
    assert "--env DB_PASSWORD --env PLAIN=seen" in call


def test_nothing_but_the_container_ever_holds_it(told: Any) -> None:
    assert not [call for call in told.calls if "hunter2" in call]
    assert "hunter2" not in told.console
    # The script itself is among them.
    kept = [path for path in told.folder.rglob("*") if path.is_file()]
    assert [path for path in kept if b"hunter2" in path.read_bytes()] == []
    assert not [name for name, body in told.cloud.objects.items() if b"hunter2" in body]


@pytest.mark.parametrize("status", ["503", "429", "no answer"])
def test_a_service_that_is_busy_is_asked_again(
    stores_it: Any, script: Script, status: str, busy: Any, dropped: Any
) -> None:
    answers = {"503": busy, "429": busy, "no answer": dropped}
    stores_it.cloud.planned["GET 7:access"] = [answers[status]] * 2
    stores_it.run(script('[ -n "$DB_PASSWORD" ]', env=NAMED))
    assert stores_it.cloud.terminal["status"] == "SUCCEEDED"


def test_a_secret_that_may_not_be_read_ends_the_try_and_is_named(machine: Any, script: Script) -> None:
    machine.run(script("true", env=NAMED))
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["reason"]) == ("FAILED", "ConfigFault")
    assert f"DB_PASSWORD: {VERSION}: HTTP 403" in terminal["detail"]
    assert machine.called("docker run") == []


def test_a_service_that_stays_away_ends_the_try(stores_it: Any, script: Script, busy: Any) -> None:
    stores_it.cloud.planned["GET 7:access"] = [busy] * 20
    stores_it.run(script("true", env=NAMED))
    assert stores_it.cloud.terminal["reason"] == "ConfigFault"
    assert "HTTP 503" in stores_it.cloud.terminal["detail"]


def test_without_secrets_nobody_is_asked(ordinary: Any) -> None:
    assert not [call for call in ordinary.cloud.calls if "access" in call]


@pytest.fixture(scope="module")
def shouting(tmp_path_factory: pytest.TempPathFactory, a_machine: Any, script: Script) -> Any:
    """A machine whose container has printed all of them, each between two words, and failed."""
    lines = [f"before {words.format(secret)}\nafter\n" for words, secret in SHOUTED.values()]
    with a_machine(tmp_path_factory.mktemp("shouting")) as machine:
        machine.tell("shouted", "".join(lines))
        machine.run(script('cat "$STANDINS/shouted"; exit 4'))
    return machine


@pytest.mark.parametrize("secret", [secret for _, secret in SHOUTED.values()], ids=SHOUTED)
def test_a_token_that_a_container_prints_is_in_no_marker_and_no_log(shouting: Any, secret: str) -> None:
    assert not [name for name, body in shouting.cloud.objects.items() if secret.encode() in body]


def test_what_stands_around_a_token_is_kept(shouting: Any) -> None:
    between = re.findall(r"before (.*)\nafter", shouting.cloud.terminal["detail"])
    assert len(between) == len(SHOUTED)
    assert [words for words in between if "[redacted]" not in words] == []

"""A secret is named in the plan and read on the machine: it reaches the container, and nothing else ever holds it."""

from __future__ import annotations

from collections.abc import Callable
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


def test_the_container_has_the_secret_and_the_rest_of_its_environment(stores_it: Any, script: Script) -> None:
    line = '[ "$DB_PASSWORD" = "$(cat "$STANDINS/expected")" ] && echo "${PLAIN} ${#DB_PASSWORD}"'
    stores_it.tell("expected", VALUE)
    stores_it.run(script(line, env={"DB_PASSWORD": NAMED["DB_PASSWORD"]}))
    assert stores_it.cloud.terminal["status"] == "SUCCEEDED"


def test_docker_is_told_the_name_of_a_secret_and_the_value_of_what_is_none(
    stores_it: Any, script: Script
) -> None:
    stores_it.run(script("true", env=NAMED))
    (call,) = stores_it.called("docker run")
    assert "--env DB_PASSWORD --env PLAIN=seen" in call


def test_nothing_but_the_container_ever_holds_it(stores_it: Any, script: Script) -> None:
    text = script("true", env=NAMED)
    stores_it.run(text)
    assert not [call for call in stores_it.calls if "hunter2" in call]
    assert "hunter2" not in text + stores_it.console
    kept = [path for path in stores_it.folder.rglob("*") if path.is_file()]
    assert [path for path in kept if b"hunter2" in path.read_bytes()] == []
    assert not [name for name, body in stores_it.cloud.objects.items() if b"hunter2" in body]


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


def test_without_secrets_nobody_is_asked(machine: Any, script: Script) -> None:
    machine.run(script("true", env={"PLAIN": "seen"}))
    assert not [call for call in machine.cloud.calls if "access" in call]


@pytest.mark.parametrize(("words", "secret"), SHOUTED.values(), ids=SHOUTED)
def test_a_token_that_a_container_prints_is_in_no_marker_and_no_log(
    machine: Any, script: Script, words: str, secret: str
) -> None:
    machine.tell("shouted", f"before {words.format(secret)}\nafter\n")
    machine.run(script('cat "$STANDINS/shouted"; exit 4'))
    assert not [name for name, body in machine.cloud.objects.items() if secret.encode() in body]
    detail = machine.cloud.terminal["detail"]
    assert (detail[:7], detail.rstrip()[-5:]) == ("before ", "after")
    assert "[redacted]" in detail

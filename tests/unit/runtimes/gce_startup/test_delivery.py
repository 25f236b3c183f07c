"""Getting the verdict out: storing it, saying it on the console, removing the VM. And keeping the token in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from runtender.runtimes.gce_answers import read_console

Script = Callable[..., str]


@pytest.mark.parametrize(
    ("answers", "tries"),
    [
        pytest.param(["busy", "busy"], 3, id="503, 503, 200"),
        pytest.param(["exists"], 1, id="412"),
        pytest.param(["may_not_replace"], 1, id="403 that names the right to replace"),
        pytest.param(["may_not_create"], 2, id="403 that names another right"),
        pytest.param(["stale_token", "no_bucket"], 3, id="401, 404"),
        pytest.param(["dropped"], 2, id="no answer"),
    ],
)
def test_the_terminal_marker_is_sent_until_it_is_stored(
    machine: Any, script: Script, answers: list[str], tries: int, request: pytest.FixtureRequest
) -> None:
    machine.cloud.planned["POST 0.terminal"] = [request.getfixturevalue(name) for name in answers]
    machine.run(script("true"))
    assert machine.cloud.calls.count("POST 0.terminal.json") == tries
    assert machine.cloud.calls[-1].startswith("DELETE")


def test_a_vm_stays_up_while_its_verdict_cannot_be_stored(machine: Any, script: Script) -> None:
    machine.cloud.buckets = frozenset({"code"})
    machine.boot(script("exit 3"))
    machine.until(lambda: machine.cloud.calls.count("POST 0.terminal.json") >= 5)
    assert machine.is_up()
    assert machine.called("shutdown") == []
    assert not [call for call in machine.cloud.calls if call.startswith("DELETE")]
    # The console holds the very words that the object will.
    assert machine.console.count("SF-MARKER") == 1
    words = read_console(machine.console, machine.nonce)
    assert words is not None
    assert json.loads(words)["exit_code"] == 3
    machine.cloud.buckets = frozenset({"code", "status"})
    machine.wait()
    assert machine.cloud.stored("terminal") == words
    assert machine.called("shutdown -h now")


def test_the_console_is_told_before_anything_is_tried(machine: Any, script: Script) -> None:
    seen: list[str] = []
    machine.cloud.on_call = lambda call: (
        seen.append(machine.console) if call.startswith("POST 0.1.log") else None
    )
    # At its real pace, so that the first log is the last one also on a busy machine.
    machine.run(script("true", scale=1))
    assert "SF-MARKER" in seen[0]


def test_a_signal_does_not_end_the_delivery(machine: Any, script: Script) -> None:
    machine.cloud.buckets = frozenset({"code"})
    machine.boot(script("exit 3"))
    machine.until(lambda: "POST 0.terminal.json" in machine.cloud.calls)
    machine.terminate()
    count = machine.cloud.calls.count("POST 0.terminal.json")
    machine.until(lambda: machine.cloud.calls.count("POST 0.terminal.json") > count + 2)
    machine.cloud.buckets = frozenset({"code", "status"})
    machine.wait()
    assert machine.cloud.terminal["exit_code"] == 3


def test_a_plan_without_a_status_bucket_starts_nothing_and_says_why(machine: Any, script: Script) -> None:
    machine.run(script("true", status_bucket=""))
    assert machine.called("docker") == []
    assert machine.called("shutdown") == []
    words = read_console(machine.console, machine.nonce)
    assert words is not None
    marker = json.loads(words)
    assert (marker["status"], marker["reason"]) == ("FAILED", "ConfigFault")
    assert marker["detail"] == "the plan names no status bucket"


def test_a_vm_that_may_not_delete_itself_powers_off(
    machine: Any, script: Script, may_not_create: Any
) -> None:
    machine.cloud.planned["DELETE"] = [may_not_create]
    machine.run(script("true"))
    assert "removing itself: HTTP 403" in machine.console
    assert machine.called("shutdown -h now")


def test_a_vm_that_is_told_not_to_delete_itself_only_powers_off(machine: Any, script: Script) -> None:
    machine.run(script("true", self_delete=False))
    assert not [call for call in machine.cloud.calls if call.startswith("DELETE")]
    assert machine.called("shutdown -h now")
    assert machine.called("poweroff") == []


def test_a_shutdown_that_fails_is_followed_by_a_poweroff(machine: Any, script: Script) -> None:
    machine.tell("shutdown.fails", "Failed to talk to init daemon")
    machine.run(script("true"))
    assert machine.called("poweroff")


def test_no_token_is_on_a_command_line_or_on_the_disk(machine: Any, script: Script, busy: Any) -> None:
    machine.cloud.planned["POST 0.terminal"] = [busy]
    machine.run(script("true"))
    assert machine.cloud.tokens >= 6
    assert machine.called("curl")
    assert not [call for call in machine.calls if "secret-" in call]
    files = [path for path in (machine.folder / "state").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"secret-" in path.read_bytes()]
    assert "secret-" not in machine.console

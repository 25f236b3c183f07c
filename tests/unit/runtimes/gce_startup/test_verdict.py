"""How the script judges a container's end, and in which order it tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Script = Callable[..., str]

STOPPING = {"systemctl.says": "stopping\n"}


@pytest.mark.parametrize((), [pytest.param(id="acceptance-C27")])
def test_a_vm_that_did_its_work_tells_so_and_removes_itself(machine: Any, script: Script) -> None:
    machine.run(script("echo worked; sleep 1.1"))
    terminal = machine.cloud.terminal
    assert terminal["end_epoch"] >= terminal["exec_start_epoch"] >= terminal["boot_epoch"] > 0
    assert terminal["execute_s"] >= 1
    assert terminal == {
        "status": "SUCCEEDED",
        "exit_code": 0,
        "instance": "sf-demand-0123456789ab-statistical-a1",
        "zone": "us-central1-b",
        "detail": "worked",
        "boot_epoch": terminal["boot_epoch"],
        "exec_start_epoch": terminal["exec_start_epoch"],
        "end_epoch": terminal["end_epoch"],
        "execute_s": terminal["end_epoch"] - terminal["exec_start_epoch"],
        "writer": "guest",
        "attempt": 1,
        "placement": 3,
        "preempted": False,
        "signal": None,
        "reason": "Completed",
        "log_uri": terminal["log_uri"],
    }
    assert machine.cloud.read(terminal["log_uri"]) == b"worked\n"
    assert machine.called("shutdown -h now")


@pytest.mark.parametrize((), [pytest.param(id="acceptance-C12")])
def test_each_thing_is_told_before_what_follows_from_it(machine: Any, script: Script) -> None:
    # At its real pace, so that no log of the work in between comes also on a busy machine.
    machine.run(script("true", scale=1))
    assert machine.cloud.calls == [
        "GET 0.terminal.json",
        "POST 0.started.json",
        "POST 0.1.log",
        "POST 0.terminal.json",
        "DELETE sf-demand-0123456789ab-statistical-a1",
    ]


def test_the_started_marker_has_a_start_and_no_end(ordinary: Any) -> None:
    started = ordinary.cloud.marker("started")
    assert started["exec_start_epoch"] >= started["boot_epoch"] > 0
    no_end = ("status", "end_epoch", "execute_s", "exit_code", "reason", "log_uri")
    assert [started[key] for key in no_end] == ["RUNNING", None, None, None, None, None]


def test_the_work_does_not_wait_for_a_started_marker_that_cannot_be_stored(
    machine: Any, script: Script, busy: Any
) -> None:
    machine.cloud.planned["POST 0.started"] = [busy] * 3
    machine.run(script("sleep 1"))
    assert machine.cloud.calls.count("POST 0.started.json") == 4
    assert machine.cloud.terminal["status"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("line", "told", "expected"),
    [
        pytest.param("exit 3", {}, ("FAILED", 3, "ExitCode"), id="exit code 3"),
        pytest.param("exit 10", {}, ("FAILED", 10, "ExitCode"), id="a code that the script uses itself"),
        pytest.param("exit 1", {"oom": ""}, ("FAILED", 1, "ExitCode"), id="memory ran out and it went on"),
        pytest.param("kill -9 $$", {}, ("FAILED", 137, "ExitCode"), id="killed"),
        pytest.param("kill -9 $$", {"oom": ""}, ("FAILED", 137, "OutOfMemory"), id="killed for its memory"),
        pytest.param("exit 143", {}, ("FAILED", 143, "ExitCode"), id="143 on a healthy VM"),
        pytest.param("exit 137", STOPPING, ("INTERRUPTED", 137, None), id="killed with the VM"),
        pytest.param("exit 3", STOPPING, ("FAILED", 3, "ExitCode"), id="failed as the VM went down"),
        pytest.param("exit 0", STOPPING, ("SUCCEEDED", 0, "Completed"), id="done as the VM went down"),
    ],
)
def test_the_containers_own_end_decides(
    machine: Any, script: Script, line: str, told: dict[str, str], expected: tuple[object, ...]
) -> None:
    for name, text in told.items():
        machine.tell(name, text)
    machine.run(script(line))
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["exit_code"], terminal["reason"]) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param({}, ("FAILED", 125, "ExitCode"), id="on a healthy VM"),
        pytest.param(STOPPING, ("INTERRUPTED", 125, None), id="on a VM that is going down"),
    ],
)
def test_what_docker_refused_never_ran(
    machine: Any, script: Script, told: dict[str, str], expected: tuple[object, ...]
) -> None:
    for name, text in ({"run.fails": "docker: bad flag"} | told).items():
        machine.tell(name, text)
    machine.run(script("true"))
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["exit_code"], terminal["reason"]) == expected
    assert (terminal["exec_start_epoch"], terminal["execute_s"]) == (None, None)
    assert terminal["detail"] == "docker: bad flag"
    assert "POST 0.started.json" not in machine.cloud.calls


def test_a_container_that_docker_forgot_is_no_failure_of_the_users(machine: Any, script: Script) -> None:
    machine.run(script('sleep 0.3; rm -r "$STANDINS/container"'))
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["exit_code"], terminal["reason"]) == ("INTERRUPTED", None, None)

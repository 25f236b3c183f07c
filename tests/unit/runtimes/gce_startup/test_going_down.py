"""A VM that is taken away: signals, preemption, and the boot after."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Script = Callable[..., str]

# Says that it runs, then runs until it is ended.
RUN = 'touch "$STANDINS/running"; while :; do sleep 0.05; done'


def is_running(machine: Any) -> bool:
    """True when the container says so, and docker knows its process as well."""
    return all(Path(machine.folder, "standins", name).exists() for name in ("running", "container/pid"))


@pytest.mark.parametrize(
    ("line", "exit_code"),
    [
        pytest.param(RUN, 143, id="acceptance-Z1"),
        pytest.param(f"trap '' TERM; {RUN}", 137, id="acceptance-Z1 container ignores TERM"),
        pytest.param(f"trap 'exit 0' TERM; {RUN}", 0, id="acceptance-Z1 container leaves with 0"),
        pytest.param(f"trap 'exit 1' TERM; {RUN}", 1, id="acceptance-Z1 container leaves with 1"),
    ],
)
def test_a_signal_to_the_shell_ends_in_an_interruption_that_names_it(
    machine: Any, script: Script, line: str, exit_code: int
) -> None:
    machine.boot(script(line))
    machine.until(lambda: is_running(machine))
    machine.terminate()
    machine.wait()
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["exit_code"], terminal["signal"]) == (
        "INTERRUPTED",
        exit_code,
        "TERM",
    )
    assert terminal["reason"] is None
    assert terminal["execute_s"] >= 0


@pytest.mark.parametrize((), [pytest.param(id="acceptance-Z1 over and over")])
def test_signals_without_end_still_end_in_one_valid_marker(machine: Any, script: Script) -> None:
    machine.boot(script(f"trap 'exit 0' TERM; {RUN}"))
    machine.until(lambda: machine.cloud.calls)
    while machine.is_up():
        machine.terminate()
        time.sleep(0.003)
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["signal"]) == ("INTERRUPTED", "TERM")
    assert machine.called("shutdown -h now")


def test_a_signal_during_the_pull_ends_it_at_once(machine: Any, script: Script) -> None:
    machine.tell("pull.waits")
    machine.boot(script("true"))
    machine.until(lambda: machine.called("docker pull"))
    machine.terminate()
    machine.wait()
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["signal"], terminal["execute_s"]) == ("INTERRUPTED", "TERM", None)
    assert machine.called("docker run") == []


def test_a_signal_while_it_asks_starts_nothing(machine: Any, script: Script, busy: Any) -> None:
    machine.cloud.planned["GET"] = [busy] * 500
    machine.boot(script("true"))
    machine.until(lambda: machine.cloud.calls.count("GET 0.terminal.json") > 2)
    machine.terminate()
    machine.wait()
    assert machine.cloud.terminal["signal"] == "TERM"
    assert machine.called("docker run") == []


def test_a_preempted_vm_says_so(machine: Any, script: Script) -> None:
    machine.boot(script(RUN))
    machine.until(lambda: is_running(machine))
    machine.cloud.preempted.set()
    # The platform stops docker, and tells the shell nothing.
    machine.end_container()
    machine.wait()
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["exit_code"], terminal["reason"]) == (
        "INTERRUPTED",
        143,
        "Preempted",
    )
    assert terminal["preempted"] is True
    assert terminal["signal"] is None


def test_a_preemption_is_remembered_when_the_metadata_server_is_gone(machine: Any, script: Script) -> None:
    machine.boot(script(RUN))
    machine.until(lambda: is_running(machine))
    machine.cloud.preempted.set()
    machine.until(lambda: list((machine.folder / "state").glob("sf-*/preempted")))
    machine.cloud.preempted.clear()
    machine.end_container()
    machine.wait()
    assert machine.cloud.terminal["reason"] == "Preempted"


def test_work_that_is_done_in_spite_of_a_preemption_is_done(machine: Any, script: Script) -> None:
    machine.cloud.preempted.set()
    machine.run(script("true"))
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["preempted"]) == ("SUCCEEDED", True)


def test_a_second_boot_starts_no_second_container(machine: Any, script: Script) -> None:
    machine.boot(script(f"echo before the reboot; {RUN}"))
    machine.until(lambda: is_running(machine) and "POST 0.started.json" in machine.cloud.calls)
    machine.lose_power()
    machine.run(script(RUN))
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["reason"], terminal["exit_code"]) == ("FAILED", "Rebooted", None)
    assert terminal["exec_start_epoch"] == machine.cloud.marker("started")["exec_start_epoch"]
    assert terminal["detail"] == "before the reboot"
    assert machine.cloud.read(terminal["log_uri"]) == b"before the reboot\n"
    assert len(machine.called("docker run")) == 1
    assert machine.cloud.calls[-1].startswith("DELETE")


def test_a_second_boot_delivers_what_the_first_could_not(machine: Any, script: Script) -> None:
    machine.cloud.buckets = frozenset({"code"})
    machine.boot(script("exit 3"))
    machine.until(lambda: "POST 0.terminal.json" in machine.cloud.calls)
    machine.lose_power()
    machine.cloud.buckets = frozenset({"code", "status"})
    machine.run(script("exit 3"))
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["exit_code"]) == ("FAILED", 3)
    assert len(machine.called("docker run")) == 1

"""`runtender local`: a cloud in the background of a folder, started, asked and stopped by commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runtender.local.store import SqliteStore
from runtender.local.watch import processes_of

pytestmark = pytest.mark.e2e

PATIENCE_S = 60.0
SCALE = "40"
Runtender = Callable[..., subprocess.CompletedProcess[str]]


@contextmanager
def command_in(folder: Path) -> Iterator[Runtender]:
    """The command, in a folder whose cloud is down afterwards."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("runtender")), *arguments]
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    yield run
    if processes_of(folder):
        run("local", "down")


def up(runtender: Runtender) -> dict[str, Any]:
    """Start a cloud with `local up`; return the document it printed."""
    started = runtender("local", "up", "--time-scale", SCALE, "--format", "json")
    assert started.returncode == 0, started.stderr
    document: dict[str, Any] = json.loads(started.stdout)
    return document


@pytest.fixture
def runtender(tmp_path: Path) -> Iterator[Runtender]:
    """The command, in a folder of its own."""
    with command_in(tmp_path) as run:
        yield run


@dataclass(frozen=True)
class Standing:
    """A cloud that stays up: its folder, the command there, and the document that `local up` printed."""

    folder: Path
    runtender: Runtender
    printed: dict[str, Any]


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """One cloud for all tests that leave it up."""
    folder = tmp_path_factory.mktemp("standing")
    with command_in(folder) as run:
        yield Standing(folder, run, up(run))


def a_working_machine(runtender: Runtender, folder: Path) -> str:
    """Submit a task that does not end, wait until it runs, and return its run."""
    task = folder / "task.json"
    task.write_text(json.dumps({"name": "endless", "command": ["sleep", "3600"]}))
    submitted = runtender("submit", "--kind", "task", str(task), "--format", "json")
    assert submitted.returncode == 0, submitted.stderr
    run_id = str(json.loads(submitted.stdout)["run_id"])
    await_phase(folder, "RUNNING")
    assert described(runtender, run_id)["jobs"][0]["phase"] == "RUNNING"
    return run_id


def described(runtender: Runtender, run_id: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(runtender("describe", run_id, "--format", "json").stdout)
    return document


def await_phase(folder: Path, phase: str) -> None:
    """Wait until the folder's only job is in a phase; the command would be a process per look."""
    with closing(SqliteStore(folder / ".runtender" / "cloud" / "store.sqlite")) as store:
        await_that(lambda: [found.data["phase"] for found in store.find("jobs")] == [phase])


def await_that(statement: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not statement():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.1)


def test_a_cloud_that_is_up_answers_by_name_and_one_that_is_down_leaves_nothing(
    runtender: Runtender, tmp_path: Path
) -> None:
    up(runtender)
    a_working_machine(runtender, tmp_path)
    status = json.loads(runtender("local", "status", "--format", "json").stdout)
    assert status["running"] is True
    assert {part["health"] for part in status["components"].values()} == {"answers"}
    assert status["processes"] >= 4, "supervisor, functions, machine, task"

    down = json.loads(runtender("local", "down", "--format", "json").stdout)
    assert down == {"running": False, "folder": str(tmp_path), "stopped": True, "processes_left": 0}
    assert processes_of(tmp_path) == []
    assert {path.name for path in (tmp_path / ".runtender").iterdir()} == {".gitignore", "lock", "logs"}
    assert runtender("local", "status").returncode == 1


def test_a_run_that_is_cancelled_twice_ends_once_and_its_machine_with_it(standing: Standing) -> None:
    runtender, folder = standing.runtender, standing.folder
    run_id = a_working_machine(runtender, folder)
    for _ in range(2):
        assert runtender("cancel", run_id).returncode == 0
    waited = runtender("wait", run_id, "--format", "json")
    assert waited.returncode == 6, waited.stderr
    await_phase(folder, "DONE")
    assert processes_of(folder / ".runtender" / "cloud" / "machines") == []
    assert runtender("cancel", run_id).returncode == 0, "after the end there is nothing to do"
    assert described(runtender, run_id)["jobs"][0]["outcome"] == "CANCELLED"
    assert runtender("cancel", "nobody-0123456789ab").returncode == 1


def test_a_killed_supervisor_takes_everything_along(runtender: Runtender, tmp_path: Path) -> None:
    running = up(runtender)
    a_working_machine(runtender, tmp_path)
    data = tmp_path / ".runtender" / "cloud"
    assert processes_of(data) != []
    os.kill(running["supervisor"], signal.SIGKILL)
    await_that(lambda: processes_of(data) == [])
    assert runtender("local", "status").returncode == 1, "its state file counts for nothing"
    again = runtender("local", "up", "--time-scale", SCALE)
    assert again.returncode == 0, again.stderr


def test_a_folder_has_one_cloud_at_a_time(standing: Standing) -> None:
    second = standing.runtender("local", "up")
    assert second.returncode == 1
    assert "is running" in second.stderr
    status = json.loads(standing.runtender("local", "status", "--format", "json").stdout)
    assert status["supervisor"] == standing.printed["supervisor"]


def test_the_environment_is_for_a_shell_to_read(standing: Standing) -> None:
    script = f'{standing.runtender("local", "env").stdout}\necho "$SF_BACKEND $STORAGE_EMULATOR_HOST"'
    echoed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert echoed.stdout.split() == ["embedded", standing.printed["addresses"]["storage"]]


def test_a_scenario_that_is_not_there_is_named_before_anything_starts(
    runtender: Runtender, tmp_path: Path
) -> None:
    refused = runtender("local", "up", "--scenario", "sunny")
    assert refused.returncode == 2
    assert "'sunny' is not known; use one of" in refused.stderr
    assert not (tmp_path / ".runtender").exists()

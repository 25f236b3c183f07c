"""The functions as a process that is kept running, with a small source in place of the plane's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from runtender.local.errors import LocalCloudError
from runtender.local.functions_process import FunctionsProcess
from runtender.local.watch import ProcessId

SOURCE = """
import os
import functions_framework

print("loaded", flush=True)

@functions_framework.http
def on_submit(request):
    return f"{os.getpid()} {os.environ['GREETING']}"

on_marker = on_tick = on_submit
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "main.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def functions(source: Path, tmp_path: Path) -> Iterator[FunctionsProcess]:
    with FunctionsProcess(source, tmp_path / "functions.log") as process:
        yield process


def start(functions: FunctionsProcess) -> None:
    functions.start({**os.environ, "GREETING": "hello"})


def ask(functions: FunctionsProcess, name: str = "on_submit") -> tuple[int, str]:
    with requests.get(f"{functions.url}/{name}/", timeout=30) as answer:
        pid, greeting = answer.text.split()
    return int(pid), greeting


def test_each_entry_point_has_a_path_of_its_own(functions: FunctionsProcess) -> None:
    start(functions)
    for name in ("on_submit", "on_marker", "on_tick"):
        assert ask(functions, name) == (functions.pid, "hello")
    with requests.get(f"{functions.url}/elsewhere/", timeout=30) as answer:
        assert answer.status_code == 404


def test_a_killed_process_is_followed_by_another_at_the_same_address(functions: FunctionsProcess) -> None:
    start(functions)
    first, _ = ask(functions)
    functions.kill()
    while ProcessId.of(first) is not None:
        time.sleep(0.01)
    second, _ = ask(functions)
    assert second != first
    assert functions.pid == second


def test_functions_that_cannot_start_end_in_their_own_words(
    functions: FunctionsProcess, source: Path
) -> None:
    source.write_text("raise RuntimeError('no such luck')")
    with pytest.raises(LocalCloudError, match="RuntimeError: no such luck"):
        start(functions)


def test_what_is_closed_stays_down(functions: FunctionsProcess) -> None:
    start(functions)
    pid, _ = ask(functions)
    functions.close()
    functions.close()
    assert ProcessId.of(pid) is None


KEEPER = """
import os, sys, time
from pathlib import Path
from runtender.local.functions_process import FunctionsProcess
functions = FunctionsProcess(Path(sys.argv[1]), Path(sys.argv[2]))
functions.start({**os.environ, "GREETING": "hello"})
print(functions.pid, flush=True)
time.sleep(60)
"""


def test_the_functions_end_with_a_keeper_that_is_killed(source: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KEEPER, str(source), str(tmp_path / "functions.log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        functions = ProcessId.of(int(keeper.stdout.readline()))
        assert functions is not None
        keeper.send_signal(signal.SIGKILL)
    await_that(lambda: not functions.is_alive)


def await_that(statement: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not statement():
        assert time.monotonic() < deadline
        time.sleep(0.02)

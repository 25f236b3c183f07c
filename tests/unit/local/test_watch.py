"""What is asked of the operating system about processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runtender.local.watch import ProcessId, ProcessWatch, processes_of

Start = Callable[..., "subprocess.Popen[bytes]"]

# More than any other process that is watched by chance may give back meanwhile.
_MUCH = 256 << 20
_SLEEP = (sys.executable, "-S", "-c", "import time; time.sleep(60)")
_PARENT = f"import subprocess; p = subprocess.Popen({list(_SLEEP)!r}); print(p.pid, flush=True); p.wait()"


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def run(*command: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command, cwd=cwd, start_new_session=True, stdout=subprocess.PIPE))
        return started[-1]

    yield run
    for process in started:
        with process, suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def await_that(statement: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not statement():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_is_known_again_only_while_it_lives(start: Start) -> None:
    process = start(*_SLEEP)
    known = ProcessId.of(process.pid)
    assert known is not None
    assert known.is_alive
    assert not ProcessId(known.pid, known.started + 1).is_alive, "another process of the same number"
    process.kill()
    await_that(lambda: not known.is_alive)
    assert ProcessId.of(process.pid) is None, "it has ended, though nobody has taken note"


def test_a_process_that_lost_its_parent_is_still_watched(start: Start) -> None:
    with ProcessWatch() as watch:
        parent = start(sys.executable, "-S", "-c", _PARENT)
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        watch.look()
        assert {parent.pid, child} <= set(watch.survivors())
        parent.kill()
        parent.wait()
        assert {parent.pid, child} & set(watch.survivors()) == {child}


def test_the_peak_counts_all_processes_together_and_does_not_fall(start: Start) -> None:
    hungry = f"b = bytearray({_MUCH}); print(flush=True); import time; time.sleep(60)"
    with ProcessWatch() as watch:
        watch.look()
        alone = watch.peak_bytes
        process = start(sys.executable, "-S", "-c", hungry)
        assert process.stdout is not None
        process.stdout.readline()
        watch.look()
        peak = watch.peak_bytes
        assert peak >= alone + _MUCH
        process.kill()
        process.wait()
        watch.look()
        assert watch.peak_bytes >= peak


def test_a_folders_processes_work_in_it_or_were_started_with_a_path_below_it(
    start: Start, tmp_path: Path
) -> None:
    folder, namesake = tmp_path / "cloud", tmp_path / "cloudy"
    for each in (folder, namesake):
        each.mkdir()
    inside = start(*_SLEEP, cwd=folder)
    told = start(*_SLEEP, str(folder / "script"))
    start(*_SLEEP, cwd=namesake)
    start(*_SLEEP, str(namesake / "script"))
    await_that(lambda: len(processes_of(tmp_path)) == 4)
    assert processes_of(folder) == sorted([inside.pid, told.pid])

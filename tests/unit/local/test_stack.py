"""Whom `local down` may end: the cloud's own processes, whatever a state file or a folder says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from runtender.local import stack
from runtender.local.errors import LocalCloudError
from runtender.local.home import CloudHome

_SLEEP = "import time; time.sleep(60)"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CloudHome]:
    """A home whose lock somebody else holds, as that of a running cloud."""
    home = CloudHome(tmp_path)
    lock = home.acquire()
    assert lock is not None
    with lock:
        yield home


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers that are signalled; the signals go nowhere."""
    numbers: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _number: numbers.append(pid))
    return numbers


@pytest.mark.parametrize(
    "supervisor",
    [
        pytest.param(1, id="the first process"),
        pytest.param(0, id="the own group"),
        pytest.param(-1, id="every process"),
        pytest.param(-os.getpgrp(), id="the own group by its number"),
        pytest.param(os.getpid(), id="the command itself"),
        pytest.param(True, id="a truth value"),
        pytest.param("seven", id="no number"),
        pytest.param(None, id="nothing"),
    ],
)
def test_down_signals_nobody_that_cannot_be_a_supervisor(
    home: CloudHome, sent: list[int], supervisor: Any
) -> None:
    home.write_state({"supervisor": supervisor})

    with pytest.raises(LocalCloudError, match=r"local\.json.*lock"):
        stack.down(home.folder)
    assert sent == []
    assert home.state.exists()


def test_down_leaves_the_shell_alone_that_stands_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = CloudHome(tmp_path).data
    data.mkdir(parents=True)
    monkeypatch.setattr(stack, "_PROBE_S", 0.2)
    of_this_session = subprocess.Popen([sys.executable, "-S", "-c", _SLEEP], cwd=data)
    of_another = subprocess.Popen([sys.executable, "-S", "-c", _SLEEP], cwd=data, start_new_session=True)
    try:
        left = stack.down(tmp_path)["processes_left"]

        assert left == 0
        assert of_another.wait(10) == -signal.SIGKILL
        assert of_this_session.poll() is None
    finally:
        for process in (of_this_session, of_another):
            with process, suppress(ProcessLookupError):
                process.kill()

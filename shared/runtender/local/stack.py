"""`runtender local down|status|env`: a local cloud in the background of a folder, seen from outside.

It knows processes and files, and loads nothing of the cloud itself.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from runtender.local.errors import LocalCloudError
from runtender.local.home import CloudHome
from runtender.local.vm.processes import descendants
from runtender.local.watch import ProcessId, processes_of

# The machines get their power-off, the functions their signal; what is not done then is killed.
_STOP_WAIT_S = 30.0
_PROBE_S = 2.0
_POLL_S = 0.05

# What of the state file people are told.
SHOWN = ("folder", "backend", "scenario", "time_scale", "started_at", "supervisor")


def down(folder: Path) -> Mapping[str, Any]:
    """Stop the local cloud of `folder` and all that runs in it; return what there was and what is left.

    Also clears up after one that crashed.
    """
    home = CloudHome(folder.resolve())
    state = home.read_state()
    if state is not None:
        _end(home, _supervisor(home, state))
    lock = home.acquire() if home.root.is_dir() else None
    if lock is not None:
        with lock:
            left = _end_all_of(home.data)
            home.clear()
    else:
        left = _own_processes(home.data)
    return {
        "running": False,
        "folder": str(home.folder),
        "stopped": state is not None,
        "processes_left": len(left),
    }


def status(folder: Path) -> Mapping[str, Any]:
    """Return whether a local cloud is running in `folder`, where its parts are, and whether each answers."""
    home = CloudHome(folder.resolve())
    state = home.read_state()
    if state is None:
        return {"running": False, "folder": str(home.folder)}
    supervisor = _supervisor(home, state)
    return {
        "running": True,
        **{name: state[name] for name in SHOWN},
        "processes": 1 + len(descendants(supervisor)),
        "components": {
            name: {"url": url, "health": _health(url)} for name, url in state["addresses"].items()
        },
    }


def environment(folder: Path) -> Mapping[str, str]:
    """Return the variables that point a client at the local cloud of `folder`; `LocalCloudError` without one."""
    state = CloudHome(folder.resolve()).read_state()
    if state is None:
        raise LocalCloudError(f"no local cloud is running in {folder}; 'runtender local up' starts one")
    variables: Mapping[str, str] = state["environment"]
    return variables


def _supervisor(home: CloudHome, state: Mapping[str, Any]) -> int:
    """Return the supervisor's process id; `LocalCloudError` where the state file names what cannot be one.

    The file may be damaged, or another's: 1, 0 and what is negative mean the machine's first process and whole groups.
    """
    named = state.get("supervisor")
    if type(named) is int and _may_be_ended(named):
        return named
    problem = f"{home.state} names {named!r} as the supervisor, which it cannot be"
    raise LocalCloudError(f"{problem}; end the process that holds {home.lock}, then run this again")


def _may_be_ended(pid: int) -> bool:
    """True for what can be a process of a cloud: a cloud never runs in the session of whoever ends it."""
    try:
        return pid > 1 and os.getsid(pid) != os.getsid(0)
    except ProcessLookupError:
        return True


def _own_processes(data: Path) -> list[int]:
    """Return the cloud's processes. A shell that stands in the data folder is none, if `down` was said in it."""
    return [pid for pid in processes_of(data) if _may_be_ended(pid)]


def _end(home: CloudHome, supervisor: int) -> None:
    """Ask the supervisor to stop, and kill it when it does not. The lock says that the number is still its own."""
    process = ProcessId.of(supervisor)
    with suppress(ProcessLookupError):
        os.kill(supervisor, signal.SIGTERM)
        if (lock := home.acquire(_STOP_WAIT_S)) is not None:
            lock.close()
            _await_end(process)
            return
        os.kill(supervisor, signal.SIGKILL)
    if (lock := home.acquire(_STOP_WAIT_S)) is not None:
        lock.close()


def _await_end(process: ProcessId | None) -> None:
    """Wait for a process that has nothing left to do; its libraries may take a moment to close."""
    deadline = time.monotonic() + _STOP_WAIT_S
    while process is not None and process.is_alive and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _end_all_of(data: Path) -> list[int]:
    """Wait for what still works in the data folder, kill what does not end, and return what cannot be killed."""
    deadline = time.monotonic() + _PROBE_S
    while (left := _own_processes(data)) and time.monotonic() < 2 * _PROBE_S + deadline:
        if time.monotonic() >= deadline:
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)
    return left


def _health(url: str) -> str:
    import requests  # noqa: PLC0415 - where nothing runs, nothing is asked

    try:
        with requests.Session() as session:
            session.trust_env = False
            session.get(url, timeout=_PROBE_S)
    except requests.RequestException:
        return "no answer"
    return "answers"

"""`runtender local up|down|status|env`: a local cloud in the background of a folder, seen from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from runtender.local.backend import BackendName, check_backend
from runtender.local.emulators import emulator_variables
from runtender.local.environment import checked_scale, clean_environment
from runtender.local.errors import LocalCloudError
from runtender.local.home import CloudHome
from runtender.local.scenarios import find_scenario
from runtender.local.vm.processes import descendants
from runtender.local.watch import ProcessId, processes_of

DEFAULT_TIME_SCALE = 1.0

# The machines get their power-off, the functions their signal; what is not done then is killed.
_STOP_WAIT_S = 30.0
_PROBE_S = 2.0
_POLL_S = 0.05
_LOG_LINES = 20

_SHOWN = ("folder", "backend", "scenario", "time_scale", "started_at", "supervisor")


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How to start a local cloud in `folder`; raises `Rejected` for a scenario that is not one.

    And `LocalCloudError` for a `backend` that this machine lacks.

    `scenario` is a shipped one's name or a YAML file, `time_scale` how many times faster than Google Cloud it runs.
    """

    folder: Path
    time_scale: float | None = None
    scenario: str | None = None
    backend: BackendName = BackendName.EMBEDDED

    def __post_init__(self) -> None:
        find_scenario(self.scenario)
        checked_scale(self.time_scale or DEFAULT_TIME_SCALE)
        check_backend(self.backend, os.environ)


def up(options: Options) -> Mapping[str, Any]:
    """Start a local cloud in the background; return what and where it is, once all of it answers."""
    folder = options.folder.resolve()
    home = CloudHome(folder)
    if home.read_state() is not None:
        raise LocalCloudError(f"a local cloud is running in {folder}; 'runtender local down' stops it")
    home.logs.mkdir(parents=True, exist_ok=True)
    log = home.logs / "supervisor.log"
    report = _start_supervisor(home, log, options)
    if not report:
        raise LocalCloudError(f"the local cloud did not start; {log} ends with:\n{_tail(log)}")
    document: Mapping[str, Any] = json.loads(report)
    if "error" in document:
        raise LocalCloudError(f"the local cloud of {folder} did not start: {document['error']}")
    return {"running": True, **{name: document[name] for name in (*_SHOWN, "addresses")}}


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
        **{name: state[name] for name in _SHOWN},
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


def _start_supervisor(home: CloudHome, log: Path, options: Options) -> str:
    """Start the supervisor and return its report: JSON, or nothing when it died before it had one."""
    receiver, sender = os.pipe()
    command = [
        *(sys.executable, "-P", "-m", "runtender.local.supervisor"),
        *("--folder", str(home.folder)),
        *("--time-scale", f"{options.time_scale or DEFAULT_TIME_SCALE:g}"),
        *("--backend", options.backend.value),
        *("--report", str(sender)),
        *(("--scenario", options.scenario) if options.scenario else ()),
    ]
    with os.fdopen(receiver, encoding="utf-8") as report:
        try:
            with log.open("wb") as words:
                subprocess.run(
                    command,
                    check=True,
                    env={**clean_environment(os.environ), **emulator_variables(os.environ)},
                    stdin=subprocess.DEVNULL,
                    stdout=words,
                    stderr=words,
                    pass_fds=(sender,),
                    start_new_session=True,
                )
        except subprocess.CalledProcessError:
            return ""
        finally:
            os.close(sender)
        return report.read()


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
    try:
        with requests.Session() as session:
            session.trust_env = False
            session.get(url, timeout=_PROBE_S)
    except requests.RequestException:
        return "no answer"
    return "answers"


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:])

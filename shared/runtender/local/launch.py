"""`runtender local up`: starts a local cloud in the background of a folder, and waits until all of it answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtender.local.backend import BackendName, check_backend
from runtender.local.emulators import emulator_variables
from runtender.local.environment import checked_scale, clean_environment
from runtender.local.errors import LocalCloudError
from runtender.local.home import CloudHome
from runtender.local.scenarios import find_scenario
from runtender.local.stack import SHOWN

DEFAULT_TIME_SCALE = 1.0

_LOG_LINES = 20


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
    return {"running": True, **{name: document[name] for name in (*SHOWN, "addresses")}}


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


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:])

"""The background process of `runtender local up`: holds the simulated services, and the functions as its child.

It leaves the terminal it was started from, reports once whether it came up, and goes on until it is told to stop. All that
it started ends with it, also when it is killed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from runtender.errors import RuntenderError
from runtender.local.backend import BackendName
from runtender.local.cloud import LocalCloud
from runtender.local.home import CloudHome
from runtender.local.scenarios import find_scenario

# Whoever asks whether a cloud is running holds the lock for a moment.
_LOCK_WAIT_S = 1.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a local cloud until a signal ends it."""
    parser = argparse.ArgumentParser(prog="supervisor", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="the folder whose cloud this is")
    parser.add_argument("--time-scale", type=float, required=True, help="how much faster than real time")
    parser.add_argument("--scenario", help="a shipped scenario, or a file")
    parser.add_argument("--backend", type=BackendName, required=True, help="embedded or google")
    parser.add_argument("--report", type=int, required=True, help="descriptor to report the start on")
    options = parser.parse_args(arguments)
    if os.fork():
        # The command that started this one waits for it, and must not wait for the cloud.
        os._exit(0)
    # Asked to stop while it starts, it stops when it has started.
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    with os.fdopen(options.report, "w", encoding="utf-8") as report:
        lock = CloudHome(options.folder).acquire(_LOCK_WAIT_S)
        if lock is None:
            report.write(json.dumps({"error": "a local cloud is running here already"}))
            return
        with lock:
            _run(options, report, stopped)


def _run(options: argparse.Namespace, report: IO[str], stopped: threading.Event) -> None:
    home = CloudHome(options.folder)
    home.prepare()
    try:
        cloud = LocalCloud(
            home.data,
            logs=home.logs,
            scenario=find_scenario(options.scenario),
            time_scale=options.time_scale,
            backend=options.backend,
        )
    except RuntenderError as error:
        report.write(json.dumps({"error": str(error)}))
        home.clear()
        return
    with cloud:
        document = _document(options, cloud)
        home.write_state(document)
        report.write(json.dumps(document))
        report.close()
        stopped.wait()
    home.clear()


def _document(options: argparse.Namespace, cloud: LocalCloud) -> dict[str, Any]:
    at = cloud.addresses
    return {
        "schema": 1,
        "folder": str(options.folder),
        "backend": options.backend.value,
        "scenario": cloud.scenario.name,
        "time_scale": options.time_scale,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "supervisor": os.getpid(),
        "addresses": {
            **cloud.backend.addresses,
            "storage": at.storage,
            "compute": at.compute,
            "container": at.container,
            "functions": at.functions,
        },
        "environment": dict(cloud.environment),
    }


if __name__ == "__main__":
    main()

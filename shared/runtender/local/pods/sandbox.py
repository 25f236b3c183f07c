"""The simulated pod itself: the process that its container descends from, and the one that ends it.

It starts the container, adopts whatever loses its parent, and leaves nothing behind when it ends: with its container, when
it is told to, or when whoever started it is gone (its standard input ends). Its output is the container's, its exit code too.

Standard library only, and named tuples instead of `dataclasses`: each pod pays for this interpreter's start.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from runtender.local.container_process import start_container, start_error
from runtender.local.vm.processes import adopt_orphans, descendants, end_descendants, end_group, exit_code

CANNOT_START = 128
"""What a container that could not be started has ended with, as Kubernetes shows it."""

_POLL_S = 0.02


class ContainerOrder(NamedTuple):
    """What a pod is to run, on which of this computer's cores.

    `environment` is all of it; `python` stands for the image's interpreter.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    hostname: str
    python: str
    cores: tuple[int, ...]


class PodHome(NamedTuple):
    """The paths below one pod's folder."""

    root: Path

    @property
    def files(self) -> Path:
        """What the container's file system is: home and working folder."""
        return self.root / "files"

    def make(self, order: ContainerOrder) -> None:
        """Create the folders and note what is to run. Files of an earlier container of the pod stay."""
        (self.files / "tmp").mkdir(parents=True, exist_ok=True)
        self._order.write_text(json.dumps(order._asdict()), encoding="utf-8")

    def order(self) -> ContainerOrder:
        """Read what is to run."""
        document: dict[str, Any] = json.loads(self._order.read_text(encoding="utf-8"))
        sequences = {name: tuple(document[name]) for name in ("argv", "cores")}
        return ContainerOrder(**{**document, **sequences})

    @property
    def _order(self) -> Path:
        return self.root / "container.json"


class Sandbox:
    """One container from its start to its end, listening for orders, a line each.

    `stop SECONDS` is a pod's deletion, `end EXIT_CODE` an end of the caller's choice, `kill_below` an end of what the main
    process has started, or starts next.
    """

    def __init__(self, process: subprocess.Popen[bytes], control: int) -> None:
        self._process = process
        self._control = control
        self._kill_at: float | None = None
        self._exit_code: int | None = None
        self._is_to_kill_below = False

    def attend(self) -> int:
        """Wait until the container has ended, or has to; return its exit code, or the one it was given."""
        ended = os.pidfd_open(self._process.pid)
        while True:
            ready, _, _ = select.select([self._control, ended], [], [], self._pause())
            if ended in ready:
                break
            if self._is_to_kill_below:
                self._kill_below()
            if (self._control in ready and not self._obey()) or self._grace_left() == 0:
                end_group(self._process.pid)
                break
        code = exit_code(self._process.wait())
        return code if self._exit_code is None else self._exit_code

    def _pause(self) -> float | None:
        return _POLL_S if self._is_to_kill_below else self._grace_left()

    def _kill_below(self) -> None:
        below = descendants(self._process.pid)
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._is_to_kill_below = not below

    def _grace_left(self) -> float | None:
        return None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())

    def _obey(self) -> bool:
        """Read orders; False when the container is to end at once."""
        for order in os.read(self._control, 1024).decode().splitlines() or [""]:
            match order.split():
                case ["stop", seconds] if float(seconds) > 0:
                    self._kill_at = time.monotonic() + float(seconds)
                    with suppress(ProcessLookupError):
                        os.kill(self._process.pid, signal.SIGTERM)
                case ["kill_below"]:
                    self._is_to_kill_below = True
                case ["end", code]:
                    self._exit_code = int(code)
                    return False
                case _:
                    return False
        return True


def main(arguments: Sequence[str]) -> int:
    """Run the pod whose folder is named; return what its process ends with."""
    home = PodHome(Path(arguments[0]))
    adopt_orphans()
    order = home.order()
    os.chdir(home.files)
    os.sched_setaffinity(0, order.cores)
    if not order.argv:
        # What an image runs by itself is in the image, and there is none here.
        print("no command specified", flush=True)  # noqa: T201 - the pod's log
        return CANNOT_START
    try:
        process = start_container(
            order.argv,
            python=order.python,
            environment=order.environment,
            hostname=order.hostname,
            stdout=None,
            stderr=None,
        )
    except OSError as error:
        print(start_error(order.argv[0], error), flush=True)  # noqa: T201 - the pod's log
        return CANNOT_START
    code = Sandbox(process, sys.stdin.fileno()).attend()
    # The main process is the container: with it goes whatever it left behind.
    end_descendants()
    return code

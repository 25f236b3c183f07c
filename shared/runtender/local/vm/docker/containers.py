"""Containers as folders: what each one was asked to run, how it stands, and what it printed.

State files are replaced whole, so that a reader finds the old or the new state and nothing between.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from runtender.local.vm.layout import MachineHome

_LOST = 255
"""The exit code of a container that the power went out on, as the daemon finds it at the next boot."""

_POLL_S = 0.02
_LONGEST_PAUSE_S = 1.0
"""How long one look at a process may take: its number may be another's by then."""


class Request(NamedTuple):
    """What `docker run` asked for. `log_bytes` and `log_files` bound the log."""

    name: str
    image: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    log_bytes: int
    log_files: int


class State(NamedTuple):
    """How a container stands; the names are those of `docker inspect`."""

    Status: str = "created"
    Running: bool = False
    Pid: int = 0
    ExitCode: int = 0
    OOMKilled: bool = False
    Error: str = ""
    StartedAt: str = ""
    FinishedAt: str = ""


class Container(NamedTuple):
    """One container's folder."""

    folder: Path

    @property
    def id(self) -> str:
        """Its id: 64 hex digits."""
        return self.folder.name

    @property
    def log(self) -> Path:
        """The newest log file; older ones have a number after the name."""
        return self.folder / "json.log"

    @property
    def root(self) -> Path:
        """What its file system is: home and working folder."""
        return self.folder / "root"

    def request(self) -> Request:
        """Read what it was asked to run."""
        document = json.loads((self.folder / "request.json").read_text(encoding="utf-8"))
        return Request(**{**document, "argv": tuple(document["argv"])})

    def state(self) -> State:
        """Read how it stands."""
        return State(**json.loads((self.folder / "state.json").read_text(encoding="utf-8")))

    def save(self, state: State) -> None:
        """Store how it stands."""
        fresh = self.folder / "state.json.new"
        fresh.write_text(json.dumps(state._asdict()), encoding="utf-8")
        fresh.replace(self.folder / "state.json")

    def signal(self, number: int) -> None:
        """Send a signal to its first process, SIGKILL to all of them; one that has ended is left alone."""
        state = self.state()
        if not state.Running:
            return
        with suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(state.Pid, number)
            else:
                os.kill(state.Pid, number)

    def end(self, exit_code: int, *, out_of_memory: bool) -> None:
        """Let it end with a code of the caller's choice instead of its own."""
        (self.folder / "end.json").write_text(json.dumps([exit_code, out_of_memory]), encoding="utf-8")
        self.signal(signal.SIGKILL)

    def end_of(self, exit_code: int) -> tuple[int, bool]:
        """Return the code it is taken to have ended with, and whether memory ran out, when it ended with `exit_code`."""
        try:
            code, out_of_memory = json.loads((self.folder / "end.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return exit_code, False
        return int(code), bool(out_of_memory)

    def wait(self, seconds: float | None = None) -> State | None:
        """Wait until it has ended; None when it has not within `seconds`."""
        deadline = time.monotonic() + (float("inf") if seconds is None else seconds)
        while (state := self.state()).Status in {"created", "running"}:
            if (left := deadline - time.monotonic()) <= 0:
                return None
            _await_end(state.Pid, min(left, _LONGEST_PAUSE_S))
            # The container's own process may have ended; what is beside it has yet to note it.
            time.sleep(_POLL_S)
        return state

    def stop(self, seconds: float) -> None:
        """Ask it to end, and make it end when it has not within `seconds`."""
        self.signal(signal.SIGTERM)
        if self.wait(seconds) is None:
            self.signal(signal.SIGKILL)
            self.wait()

    def remove(self) -> None:
        """Remove its folder; it must have ended."""
        from shutil import rmtree  # noqa: PLC0415 - loads all kinds of archives, which each docker command would pay for

        rmtree(self.folder)


def create(home: MachineHome, request: Request) -> Container:
    """Make the folder of a new container."""
    # Not from `secrets`, which loads what each docker command would pay for.
    container = Container(home.containers / os.urandom(32).hex())
    container.root.mkdir(parents=True)
    (container.root / "tmp").mkdir()
    (container.folder / "request.json").write_text(json.dumps(request._asdict()), encoding="utf-8")
    container.save(State())
    return container


def all_containers(home: MachineHome) -> Iterator[Container]:
    """Go through all containers, oldest first."""
    folders = (path for path in home.containers.iterdir() if (path / "state.json").exists())
    for folder in sorted(folders, key=lambda path: path.stat().st_ctime_ns):
        yield Container(folder)


def find(home: MachineHome, reference: str) -> Container | None:
    """Look a container up by its name or the beginning of its id."""
    for container in all_containers(home):
        if container.request().name == reference or (reference and container.id.startswith(reference)):
            return container
    return None


def recover(home: MachineHome) -> None:
    """Put states right after a boot: nothing runs, whatever the files say."""
    for container in all_containers(home):
        state = container.state()
        if state.Running:
            container.save(
                state._replace(Status="exited", Running=False, Pid=0, ExitCode=_LOST, FinishedAt=timestamp())
            )


def _await_end(pid: int, seconds: float) -> None:
    """Wait until a process has ended, for so long at most; 0 stands for one that is not there yet."""
    if not pid:
        return
    # Gone already; or a sandbox does not let us ask, and then the caller's pause has to do.
    with suppress(OSError):
        process = os.pidfd_open(pid)
        try:
            select.select([process], [], [], seconds)
        finally:
            os.close(process)


def timestamp() -> str:
    """Return the time as docker writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")

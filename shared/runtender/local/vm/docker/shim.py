"""The process beside each container: starts it, keeps its log, and writes down how it ended.

It outlives the `docker run` that started it and ends with its container. It watches the machine, too: when that is gone,
the container goes at once.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
from pathlib import Path
from typing import IO

from runtender.local.container_process import start_container, start_error
from runtender.local.vm.docker.containers import Container, State, timestamp
from runtender.local.vm.layout import MachineFacts, MachineHome
from runtender.local.vm.processes import adopt_orphans, end_descendants, exit_code

_NO_COMMAND = 127
_NO_PERMISSION = 126
_CHUNK = 64 * 1024
_LONGEST_LINE = 16 * 1024
"""Longer lines are logged in pieces, as the real log driver does it."""


def main(home: MachineHome, container: Container, started: IO[str]) -> None:
    """Run one container to its end. Tells on `started`, in one line, whether it could begin."""
    adopt_orphans()
    os.chdir(container.root)
    facts = home.facts()
    try:
        process = _start(facts, container)
    except OSError as error:
        code = _NO_PERMISSION if isinstance(error, PermissionError) else _NO_COMMAND
        reason = start_error(container.request().argv[0], error)
        container.save(container.state()._replace(Status="exited", ExitCode=code, Error=reason))
        _tell(started, reason)
        return
    running = State(Status="running", Running=True, Pid=process.pid, StartedAt=timestamp())
    container.save(running)
    _tell(started, "started")
    _attend(home, container, process)
    # Has it not ended, the machine is gone. Its status is read before anything else reaps it.
    process.kill()
    code, out_of_memory = container.end_of(exit_code(process.wait()))
    # The main process is the container: with it goes whatever it left behind.
    end_descendants()
    container.save(
        running._replace(
            Status="exited",
            Running=False,
            Pid=0,
            ExitCode=code,
            OOMKilled=out_of_memory,
            FinishedAt=timestamp(),
        )
    )


def _start(facts: MachineFacts, container: Container) -> subprocess.Popen[bytes]:
    request = container.request()
    return start_container(
        request.argv,
        python=facts.worker_python,
        environment={**facts.worker_environment, **request.environment},
        hostname=container.id[:12],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _tell(started: IO[str], line: str) -> None:
    started.write(line + "\n")
    started.close()


def _attend(home: MachineHome, container: Container, process: subprocess.Popen[bytes]) -> None:
    """Log what the container prints until its main process ends, or the machine does."""
    request = container.request()
    log = _Log(container.log, request.log_bytes, request.log_files)
    machine = os.pidfd_open(int(home.machine_pid.read_text(encoding="utf-8")))
    ended = os.pidfd_open(process.pid)
    with selectors.DefaultSelector() as selector, log:
        for stream, name in ((process.stdout, "stdout"), (process.stderr, "stderr")):
            assert stream is not None  # noqa: S101 (both were asked for)
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, _Stream(name))
        selector.register(ended, selectors.EVENT_READ)
        selector.register(machine, selectors.EVENT_READ)
        over = False
        while not over:
            ready = selector.select()
            over = any(key.data is None for key, _ in ready)
            # Once more after the end: what was printed last is still in the pipes.
            for key in list(selector.get_map().values()) if over else [key for key, _ in ready]:
                if isinstance(key.data, _Stream) and not _copy(key.fd, key.data, log):
                    selector.unregister(key.fileobj)


class _Stream:
    """One of the container's two pipes, and the beginning of a line that has not ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rest = b""


def _copy(descriptor: int, stream: _Stream, log: _Log) -> bool:
    """Move all there is from a pipe to the log; False when the pipe has ended."""
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return True
        stream.rest += chunk
        while (end := stream.rest.find(b"\n") + 1) or len(stream.rest) >= _LONGEST_LINE:
            cut = min(end or _LONGEST_LINE, _LONGEST_LINE)
            line, stream.rest = stream.rest[:cut], stream.rest[cut:]
            log.write(stream.name, line)
        if not chunk:
            if stream.rest:
                log.write(stream.name, stream.rest)
                stream.rest = b""
            return False


class _Log:
    """The json-file log: one object a line, cut into at most `files` files of about `limit` bytes."""

    def __init__(self, path: Path, limit: int, files: int) -> None:
        self._path = path
        self._limit = limit
        self._files = files
        self._size = 0
        self._file: IO[str] | None = None

    def __enter__(self) -> _Log:
        self._file = self._path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def write(self, stream: str, line: bytes) -> None:
        if self._size >= self._limit:
            self._rotate()
        entry = (
            json.dumps({"log": line.decode("utf-8", "replace"), "stream": stream, "time": timestamp()}) + "\n"
        )
        self._size += len(entry)
        if self._file:
            self._file.write(entry)
            self._file.flush()

    def _rotate(self) -> None:
        self.__exit__()
        for number in range(self._files - 1, 0, -1):
            older = self._path if number == 1 else self._path.with_name(f"{self._path.name}.{number - 1}")
            if older.exists():
                older.replace(self._path.with_name(f"{self._path.name}.{number}"))
        if self._files == 1:
            self._path.unlink()
        self._size = 0
        self.__enter__()

"""Be one worker of an Indexed Job: run a command, and tell with markers that it runs and how it ended.

A pod runs this text, with the call of `main` that `source` puts behind it, as `python -c <text> ARGUMENTS`. It stands
alone: it needs nothing but the standard library. Where the environment names no try to speak for
(SF_VM_RUNTIME=gke, SF_JOB_KEY, SF_NONCE, SF_STATUS_BUCKET), it becomes the command and nothing else.

Kubernetes' own status of the Job decides how the Job ended; markers wake the plane, and say it once the Job is gone. They
are written once, so a marker says only what stays true. An index that was told to end writes none: Kubernetes starts it
again elsewhere. Nor does one that failed and may be repeated (SF_INDEX_RETRIES). And an index whose end is told already
does not begin.

The exit status is the command's, 128 + n for signal n, whatever became of markers and logs; 3 where storage does not
answer before anything has begun.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtender.worker.json_api import Objects, StorageSilent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

NO_STORAGE = 3
INTERRUPTED = 128 + signal.SIGTERM

# More patience than fetching the code has, which comes next.
_FIRST_LOOK_S = 600.0
_MARKER_S = 120.0
# The verdict waits for the last log. A pod that is told to end may have 15 s in all.
_LAST_LOG_S = 30.0
_HURRIED_LOG_S = 5.0
_LOG_EVERY_S = 60.0
_RECENT_LOG_BYTES = 64 * 1024
_LAST_LOG_BYTES = 5_000_000
_DETAIL_LINES, _DETAIL_CHARACTERS = 25, 800
_DRAIN_S = 5.0
_CHUNK = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Told:
    """Which try of which worker this is. `folder` holds its markers; `logs` is a `gs://` folder, or empty."""

    bucket: str
    folder: str
    index: int
    attempt: int
    placement: int
    instance: str
    pod_uid: str
    may_be_repeated: bool
    logs: str

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Told | None:
        """Read the environment; None where it names no try of a worker on Kubernetes."""
        key, nonce, bucket = (
            environ.get(name, "") for name in ("SF_JOB_KEY", "SF_NONCE", "SF_STATUS_BUCKET")
        )
        if environ.get("SF_VM_RUNTIME") != "gke" or not (key and nonce and bucket):
            return None
        return cls(
            bucket=bucket,
            folder=f"runs/status/{key}/{nonce}/",
            index=int(environ.get("JOB_COMPLETION_INDEX") or 0),
            attempt=int(environ.get("SF_ATTEMPT") or 1),
            placement=int(environ.get("SF_PLACEMENT") or 0),
            instance=environ.get("HOSTNAME", ""),
            pod_uid=environ.get("SF_POD_UID", ""),
            may_be_repeated=int(environ.get("SF_INDEX_RETRIES") or 0) > 0,
            logs=environ.get("SF_LOGS_URI", ""),
        )


class Tail:
    """The end of what the command prints on its two streams, bounded. Their lines are not torn by each other's."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._begun: dict[int, bytes] = {}
        self._lock = threading.Lock()

    def add(self, stream: int, piece: bytes) -> None:
        """Append a piece of a stream; what is too old goes. The beginning of a line of up to 64 KiB waits for its end."""
        with self._lock:
            # A carriage return at the end may be half of a line's end.
            ends = 1 + max(piece.rfind(b"\n"), piece.rfind(b"\r", 0, -1))
            begun = self._begun.get(stream, b"")
            if not ends and len(begun) + len(piece) > _CHUNK:
                ends = len(piece)
            if ends:
                self._bytes += begun + piece[:ends]
                begun = b""
            self._begun[stream] = begun + piece[ends:]
            del self._bytes[:-_LAST_LOG_BYTES]

    def last(self, size: int) -> bytes:
        """Return the last `size` bytes, or all there are, with the lines that are not at their end yet."""
        with self._lock:
            return bytes(self._bytes[-size:] + b"".join(self._begun.values()))[-size:]

    def detail(self) -> str:
        """Return the last lines, as far as a marker has room for them."""
        text = self.last(4 * _DETAIL_CHARACTERS).decode("utf-8", "replace")
        return "\n".join(text.splitlines()[-_DETAIL_LINES:])[-_DETAIL_CHARACTERS:]


class Teller:
    """Writes one worker's markers and logs."""

    def __init__(self, told: Told, objects: Objects) -> None:
        self._told, self._objects = told, objects
        self._boot_epoch = int(time.time())
        self._exec_start_epoch = self._boot_epoch
        self._shipped = b""

    def settled_status(self) -> int | None:
        """Return what to exit with where the end of this index, or of the whole Job, is told already; else None.

        A failure stays one: Kubernetes, which starts an index again when it lost the pod, would count a 0 as success.
        """
        told = self._told
        body = self._objects.read(told.bucket, f"{told.folder}{told.index}.terminal.json", _FIRST_LOOK_S)
        if body is not None:
            status = _status_of(body)
            say(f"index {told.index} has ended before, with {status}")
            return status
        if self._objects.read(told.bucket, f"{told.folder}job.terminal.json", _FIRST_LOOK_S) is not None:
            say("the plane has given this Job up")
            return 0
        return None

    def tell_started(self) -> None:
        """Say that the command runs."""
        self._exec_start_epoch = int(time.time())
        self._store("started", {"status": "RUNNING"})

    def tell_ended(self, returned: int, tail: Tail) -> None:
        """Say how the command ended, when nobody will start it again."""
        code = exit_status(returned)
        uri = self.ship(tail.last(_LAST_LOG_BYTES), _LAST_LOG_S)
        if code and self._told.may_be_repeated:
            say(f"index {self._told.index} failed with {code}; Kubernetes may start it again")
            return
        now = int(time.time())
        ending = {
            "status": "FAILED" if code else "SUCCEEDED",
            "exit_code": code,
            "reason": "ExitCode" if code else "Completed",
            "signal": _signal_name(returned),
            "detail": tail.detail(),
            "end_epoch": now,
            "execute_s": now - self._exec_start_epoch,
            "log_uri": uri,
        }
        self._store("terminal", ending)

    def ship(self, log: bytes, patience_s: float) -> str | None:
        """Store the end of the log if it has changed; return where it lies, None if it was not stored."""
        bucket, _, folder = self._told.logs.removeprefix("gs://").partition("/")
        if not bucket or not log or log == self._shipped:
            return None
        # Numbered by the clock: an index that is started again goes on counting.
        name = f"{folder}/{self._told.index}.{int(time.time())}.log"
        if not self._objects.create(bucket, name, log, "text/plain", patience_s):
            return None
        self._shipped = log
        return f"gs://{bucket}/{name}"

    def _store(self, stage: str, more: Mapping[str, object]) -> None:
        told = self._told
        body = {
            "exit_code": None,
            "instance": told.instance,
            "zone": "",
            "detail": "",
            "boot_epoch": self._boot_epoch,
            "exec_start_epoch": self._exec_start_epoch,
            "end_epoch": None,
            "execute_s": None,
            "writer": "bootstrap",
            "attempt": told.attempt,
            "placement": told.placement,
            "signal": None,
            "preempted": False,
            "reason": None,
            "pod_uid": told.pod_uid,
            "log_uri": None,
            **more,
        }
        name = f"{told.folder}{told.index}.{stage}.json"
        content = json.dumps(body, sort_keys=True).encode() + b"\n"
        self._objects.create(told.bucket, name, content, "application/json", _MARKER_S)


class Worker:
    """The command as a process below this one, which passes on its output and what it is told by signals."""

    def __init__(self, command: Sequence[str]) -> None:
        self.tail = Tail()
        self.is_told_to_end = False
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: list[threading.Thread] = []

    def heed_signals(self) -> None:
        """Take SIGTERM from here on: it ends the command, or this process where there is none yet."""
        signal.signal(signal.SIGTERM, self._end)

    def start(self) -> None:
        """Start the command."""
        process = subprocess.Popen(  # noqa: S603 - what the pod was made for
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._process = process
        for source, sink in ((process.stdout, 1), (process.stderr, 2)):
            reader = threading.Thread(target=self._pass_on, args=(source, sink), daemon=True)
            reader.start()
            self._readers.append(reader)

    def wait(self, seconds: float) -> int | None:
        """Return what the command returned once it has ended, -n for signal n; None if it goes on after `seconds`."""
        assert self._process is not None  # noqa: S101 - started before
        try:
            returned = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        # What it started may hold the pipes and live on; the pod ends with the command all the same.
        ends = time.monotonic() + _DRAIN_S
        for reader in self._readers:
            reader.join(max(0.0, ends - time.monotonic()))
        return returned

    def _pass_on(self, source: Any, sink: int) -> None:
        while chunk := os.read(source.fileno(), _CHUNK):
            self.tail.add(sink, chunk)
            # A reader of ours that has gone must not stop the command.
            with suppress(OSError):
                while chunk:
                    chunk = chunk[os.write(sink, chunk) :]

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        if self._process is None:
            sys.exit(INTERRUPTED)
        self.is_told_to_end = True
        self._process.terminate()


def main(command: Sequence[str]) -> int:
    """Run `command`, tell of it, and return what to exit with."""
    told = Told.read(os.environ)
    if told is None:
        os.execv(command[0], list(command))  # noqa: S606 - no shell between
    worker = Worker(command)
    worker.heed_signals()
    teller = Teller(told, Objects(os.environ, say))
    try:
        settled = teller.settled_status()
    except StorageSilent as error:
        say(f"not begun: {error}")
        return NO_STORAGE
    return attend(worker, teller) if settled is None else settled


def attend(worker: Worker, teller: Teller) -> int:
    """Run the worker to its end and tell of it; return what to exit with."""
    worker.start()
    teller.tell_started()
    while (returned := worker.wait(_LOG_EVERY_S)) is None:
        teller.ship(worker.tail.last(_RECENT_LOG_BYTES), 0)
    if worker.is_told_to_end:
        teller.ship(worker.tail.last(_LAST_LOG_BYTES), _HURRIED_LOG_S)
        # Told to end, a command may leave with 0 and its work undone: Kubernetes must not take that for the end of it.
        return exit_status(returned) or INTERRUPTED
    teller.tell_ended(returned, worker.tail)
    return exit_status(returned)


def exit_status(returned: int) -> int:
    """Return a shell's number for how a process ended: 128 + n for signal n."""
    return 128 - returned if returned < 0 else returned


def say(line: str) -> None:
    """Say something in the pod's log."""
    print(f"bootstrap: {line}", file=sys.stderr, flush=True)


def _status_of(body: bytes) -> int:
    """Return what to exit with where this marker is there already; one that nobody can read is no success."""
    try:
        marker = json.loads(body)
        failed = marker["status"] == "FAILED"
        code = marker.get("exit_code")
    except (ValueError, KeyError, TypeError, AttributeError):
        return 1
    if not failed:
        return 0
    return code if isinstance(code, int) and 0 < code < 256 else 1


def _signal_name(returned: int) -> str | None:
    return signal.Signals(-returned).name.removeprefix("SIG") if returned < 0 else None

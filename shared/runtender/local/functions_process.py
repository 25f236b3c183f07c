"""Keeps the functions running from outside: starts their process, starts it again when it ends, stops it in the end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType

from runtender.local.errors import LocalCloudError

ENTRY_POINTS = ("on_submit", "on_marker", "on_tick")
READY = b"ready\n"
"""What the functions say on their tether when they can be called."""

# Loading three apps takes about a second; a machine that is very busy takes longer.
_START_WAIT_S = 60.0
_RESTART_PAUSE_S = 0.2
_STOP_WAIT_S = 5.0
_BACKLOG = 128
_SHOWN_LOG_BYTES = 2000


class FunctionsProcess(AbstractContextManager["FunctionsProcess"]):
    """One address, and behind it one process after another.

    The listening socket stays here: while no process lives, requests wait for the next one, as they do for an instance
    in the cloud. Those that the dead one was working on break off.
    """

    def __init__(self, source: Path, log: Path) -> None:
        self._source = source
        self.log = log
        self._environment: Mapping[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._tether: socket.socket | None = None
        self._keeper: threading.Thread | None = None
        self._gate = threading.Lock()
        self._closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """The process that serves now; None before the first and after the last."""
        return self._process.pid if self._process is not None else None

    def start(self, environment: Mapping[str, str]) -> None:
        """Start the functions in `environment` and wait until they answer; `LocalCloudError` if they do not."""
        self._environment = environment
        with self._gate:
            tether = self._spawn()
        tether.settimeout(_START_WAIT_S)
        with suppress(TimeoutError):
            if tether.recv(len(READY)) == READY:
                self._keeper = threading.Thread(target=self._keep, daemon=True)
                self._keeper.start()
                return
        raise LocalCloudError(f"the functions did not start; {self.log} ends with:\n{self._last_words()}")

    def kill(self) -> None:
        """Kill the process that serves now, as it stands; another one follows."""
        with self._gate:
            if self._process is not None:
                self._process.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Stop the functions for good. May be called twice."""
        self._closed.set()
        with self._gate:
            if self._process is not None:
                self._stop(self._process)
        if self._keeper is not None:
            self._keeper.join()
        if self._tether is not None:
            self._tether.close()
        self._listener.close()

    def _keep(self) -> None:
        while self._process is not None:
            self._process.wait()
            self._closed.wait(_RESTART_PAUSE_S)
            with self._gate:
                if self._closed.is_set():
                    return
                self._spawn()

    def _spawn(self) -> socket.socket:
        if self._tether is not None:
            self._tether.close()
        self._tether, theirs = socket.socketpair()
        command = [
            *(sys.executable, "-P", "-m", "runtender.local.functions_host"),
            *("--source", str(self._source)),
            *("--listener", str(self._listener.fileno())),
            *("--tether", str(theirs.fileno())),
        ]
        with theirs, self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(self._listener.fileno(), theirs.fileno()),
                # Ctrl-C is for whoever started the cloud, who then stops it in order.
                start_new_session=True,
            )
        self.starts += 1
        return self._tether

    @staticmethod
    def _stop(process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(_STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _last_words(self) -> str:
        with self.log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _SHOWN_LOG_BYTES))
            return log.read().decode("utf-8", "replace")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

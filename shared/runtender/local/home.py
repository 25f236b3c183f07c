"""What a running local cloud leaves in the folder it was started in: a lock, a state file, logs, and its data.

The lock is held by the supervisor for as long as it lives, so whether a cloud is running is never a guess: process ids
are given out again, and a state file outlives a crash.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from runtender.local.errors import LocalCloudError

_POLL_S = 0.05
_GITIGNORE = "*\n"
_MOST_SWEEPS = 20


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it, also while somebody is still closing files there."""
    for _ in range(_MOST_SWEEPS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_POLL_S)


@dataclass(frozen=True, slots=True)
class CloudHome:
    """The paths of the local cloud of `folder`."""

    folder: Path

    @property
    def root(self) -> Path:
        """Everything of ours in the folder."""
        return self.folder / ".runtender"

    @property
    def data(self) -> Path:
        """What lives and dies with one cloud: store, objects, machines."""
        return self.root / "cloud"

    @property
    def logs(self) -> Path:
        """What supervisor and functions printed, of the last cloud that was started here."""
        return self.root / "logs"

    @property
    def state(self) -> Path:
        """How clients find the cloud."""
        return self.root / "local.json"

    @property
    def lock(self) -> Path:
        """Locked while a supervisor lives."""
        return self.root / "lock"

    def prepare(self) -> None:
        """Make the data folder anew. Only for whoever holds the lock."""
        remove_folder(self.data)
        self.data.mkdir(parents=True)

    def clear(self) -> None:
        """Remove state file and data. Only for whoever holds the lock."""
        self.state.unlink(missing_ok=True)
        remove_folder(self.data)

    def acquire(self, wait_s: float = 0.0) -> IO[bytes] | None:
        """Take the lock, which is held until the file is closed; None when somebody has it after `wait_s`."""
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / ".gitignore").write_text(_GITIGNORE, encoding="ascii")
        deadline = time.monotonic() + wait_s
        file = self.lock.open("ab")
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return file
            if time.monotonic() >= deadline:
                file.close()
                return None
            time.sleep(_POLL_S)

    def write_state(self, document: Mapping[str, Any]) -> None:
        """Store the state whole: a reader finds all of it or nothing."""
        fresh = self.state.with_suffix(".new")
        fresh.write_text(json.dumps(document, indent=2), encoding="utf-8")
        fresh.replace(self.state)

    def read_state(self) -> Mapping[str, Any] | None:
        """Read the state of a cloud that is running; None when none is, `LocalCloudError` for a broken file.

        The state file of a crashed cloud counts for nothing.
        """
        if not self.root.is_dir():
            return None
        if (free := self.acquire()) is not None:
            free.close()
            return None
        try:
            document: Mapping[str, Any] = json.loads(self.state.read_bytes())
        except FileNotFoundError:
            # It is just starting, or just stopping.
            return None
        except ValueError as error:
            raise LocalCloudError(f"{self.state} is no JSON: {error}; run 'runtender local down'") from error
        return document

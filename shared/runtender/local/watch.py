"""What the operating system says about the local cloud's processes: their memory together, and whether any is left."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from runtender.local.vm.processes import descendants

_PERIOD_S = 0.5


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process beyond doubt: numbers are given out again, but not with the same start time (clock ticks since boot)."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """Identify a living process; None for one that is gone or only waits to be noticed."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        # The name stands in brackets and may hold anything; the state is the first word after it, the start the 20th.
        words = text.rpartition(")")[2].split()
        return None if words[0] in {"Z", "X"} else cls(pid, int(words[19]))

    @property
    def is_alive(self) -> bool:
        """True while this very process lives."""
        return ProcessId.of(self.pid) == self


class ProcessWatch(AbstractContextManager["ProcessWatch"]):
    """Looks at all processes below this one, twice a second, until it is closed.

    `peak_bytes` is the largest sum of their resident sizes, this process included. Shared pages count for each that
    shares them, so the true need is smaller.
    """

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._seen: set[ProcessId] = set()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Take a look now."""
        below = descendants(os.getpid())
        self._seen.update(found for pid in below if (found := ProcessId.of(pid)))
        self.peak_bytes = max(self.peak_bytes, sum(_resident_bytes(pid) for pid in [os.getpid(), *below]))

    def survivors(self) -> list[int]:
        """Return those of the processes ever seen that still live."""
        return sorted(seen.pid for seen in self._seen if seen.is_alive)

    def close(self) -> None:
        """Stop looking. May be called twice."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(_PERIOD_S):
            self.look()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def processes_of(folder: Path) -> list[int]:
    """Return the processes that work in `folder`, or were started with a path below it; this one excepted."""
    return sorted(pid for pid in _all_pids() if pid != os.getpid() and _is_of(pid, os.fsencode(folder)))


def _all_pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _is_of(pid: int, folder: bytes) -> bool:
    if ProcessId.of(pid) is None:
        return False
    with suppress(OSError):
        if folder + b"/" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return True
    with suppress(OSError):
        return (os.fsencode(Path(f"/proc/{pid}/cwd").readlink()) + b"/").startswith(folder + b"/")
    return False


def _resident_bytes(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return 0
    return pages * resource.getpagesize()

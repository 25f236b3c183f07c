"""A process of ours that has others below it and lives by a pipe from here: what a simulated machine is, or a pod.

Should this process die, whatever way, the pipe ends, and the other one sees to it that nothing of it stays. Until then the
pipe carries orders to it, a line each.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from runtender.local.vm.processes import descendants, exit_code

_END_S = 10.0
"""How long it may take to end. It kills its processes and goes; this is for a slow computer."""


@dataclass(frozen=True, slots=True)
class Tethered:
    """One such process."""

    _process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, command: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> Tethered:
        """Start it in a folder, in a session of its own, and with nothing of the caller's environment."""
        return cls(
            subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        )

    @property
    def output(self) -> IO[bytes]:
        """What it and those below it print."""
        assert self._process.stdout is not None  # noqa: S101 (it was asked for)
        return self._process.stdout

    def tell(self, order: str) -> None:
        """Give it an order; one that has ended has nobody left to listen."""
        assert self._process.stdin is not None  # noqa: S101 (it was asked for)
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{order}\n".encode())
            self._process.stdin.flush()

    def end(self) -> bool:
        """Make it end, with all below it, and wait for that; False where it was killed and could not see to them."""
        assert self._process.stdin is not None  # noqa: S101 (it was asked for)
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        return self._process.wait() >= 0

    def wait(self) -> int:
        """Wait until it has ended; return its exit code as a shell counts it."""
        return exit_code(self._process.wait())

    def count(self) -> int:
        """Count it and the processes below it; 0 once it has ended."""
        return 1 + len(descendants(self._process.pid)) if self._process.poll() is None else 0

"""Where the bytes of objects lie: in memory for simulations, in files where real forecasts run."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Bodies(Protocol):
    """Bytes by the generation that they were stored under."""

    def keep(self, generation: int, body: bytes) -> None:
        """Keep a body."""

    def read(self, generation: int) -> bytes:
        """Return a body; it must be there."""

    def forget(self, generation: int) -> None:
        """Drop a body; it must be there."""


class MemoryBodies:
    """Bodies in a dictionary."""

    def __init__(self) -> None:
        self._bodies: dict[int, bytes] = {}

    def keep(self, generation: int, body: bytes) -> None:
        self._bodies[generation] = body

    def read(self, generation: int) -> bytes:
        return self._bodies[generation]

    def forget(self, generation: int) -> None:
        del self._bodies[generation]


class DiskBodies:
    """Bodies as files of a folder, named by generation: object names are no safe file names."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def keep(self, generation: int, body: bytes) -> None:
        self._file(generation).write_bytes(body)

    def read(self, generation: int) -> bytes:
        return self._file(generation).read_bytes()

    def forget(self, generation: int) -> None:
        self._file(generation).unlink()

    def _file(self, generation: int) -> Path:
        return self._folder / str(generation)

"""Serial consoles: the last mebibyte of what each machine printed, with positions that go on counting."""

from __future__ import annotations

from typing import Any

KEPT_BYTES = 1024 * 1024
"""What Compute Engine keeps of a console."""


class Console:
    """One machine's console. Positions count every byte ever printed, also those that are gone."""

    def __init__(self) -> None:
        self._kept = b""
        self._printed = 0

    def write(self, chunk: bytes) -> None:
        """Print."""
        self._printed += len(chunk)
        self._kept = (self._kept + chunk)[-KEPT_BYTES:]

    def document(self, start: int) -> dict[str, Any]:
        """Return what was printed from `start` on; a negative `start` counts from the end."""
        oldest = self._printed - len(self._kept)
        wanted = self._printed + start if start < 0 else start
        first = min(max(wanted, oldest), self._printed)
        return {
            "kind": "compute#serialPortOutput",
            "contents": self._kept[first - oldest :].decode("utf-8", "replace"),
            "start": str(first),
            "next": str(self._printed),
        }

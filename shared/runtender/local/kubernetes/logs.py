"""What pods printed: the last mebibytes of each, with the time of each line, as `kubectl logs` reads them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from runtender.local.kubernetes.documents import fine_stamp, moment_of
from runtender.local.kubernetes.errors import bad_request
from runtender.local.kubernetes.queries import flag

KEPT_BYTES = 10 * 1024 * 1024
"""What a node keeps of a container's log."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogRequest:
    """Which part of a log is wanted. None wants all."""

    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: datetime | None = None
    timestamps: bool = False
    previous: bool = False

    @classmethod
    def read(cls, query: Mapping[str, str], now: datetime) -> LogRequest:
        """Read a request's query; raises `StatusError` 400 for what is no number or time."""
        try:
            seconds = _whole(query, "sinceSeconds")
            since = moment_of(query["sinceTime"]) if query.get("sinceTime") else None
            return cls(
                tail_lines=_whole(query, "tailLines"),
                limit_bytes=_whole(query, "limitBytes"),
                since=since if seconds is None else now - timedelta(seconds=seconds),
                timestamps=flag(query, "timestamps"),
                previous=flag(query, "previous"),
            )
        except ValueError as error:
            raise bad_request(f"unable to decode query as PodLogOptions: {error}") from error


@dataclass(kw_only=True, slots=True)
class _Log:
    """One run of a container. The last line may be unfinished."""

    lines: list[tuple[datetime, bytes]] = field(default_factory=list)
    size: int = 0
    written: int = 0


class PodLogs:
    """The logs of all pods that are there, by UID and restart."""

    def __init__(self) -> None:
        self._logs: defaultdict[str, dict[int, _Log]] = defaultdict(dict)

    def write(self, uid: str, restart: int, chunk: bytes, now: datetime) -> None:
        """Add what a container printed."""
        log = self._logs[uid].setdefault(restart, _Log())
        for line in chunk.splitlines(keepends=True):
            if log.lines and not log.lines[-1][1].endswith((b"\n", b"\r")):
                since, begun = log.lines[-1]
                log.lines[-1] = (since, begun + line)
            else:
                log.lines.append((now, line))
        log.size += len(chunk)
        log.written += len(chunk)
        while log.size > KEPT_BYTES and len(log.lines) > 1:
            log.size -= len(log.lines.pop(0)[1])

    def read(self, uid: str, restart: int, wanted: LogRequest) -> bytes:
        """Return the part of a log that is wanted."""
        log = self._logs.get(uid, {}).get(restart - 1 if wanted.previous else restart, _Log())
        lines = [(at, line) for at, line in log.lines if wanted.since is None or at >= wanted.since]
        if wanted.tail_lines is not None:
            lines = lines[max(0, len(lines) - wanted.tail_lines) :]
        if wanted.timestamps:
            lines = [(at, fine_stamp(at).encode() + b" " + line) for at, line in lines]
        text = b"".join(line for _, line in lines)
        return text if wanted.limit_bytes is None else text[: wanted.limit_bytes]

    def written(self, uid: str, restart: int) -> int:
        """Return how many bytes a container has printed in all."""
        return self._logs.get(uid, {}).get(restart, _Log()).written

    def since(self, uid: str, restart: int, position: int) -> bytes:
        """Return what was printed after the first `position` bytes, as far as it is kept."""
        log = self._logs.get(uid, {}).get(restart, _Log())
        fresh = log.written - position
        return b"".join(line for _, line in log.lines)[-fresh:] if fresh > 0 else b""

    def forget(self, uid: str) -> None:
        """Drop the logs of a pod that is gone."""
        self._logs.pop(uid, None)


def _whole(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    number = int(text)
    if number < 0:
        raise ValueError(f"{name} must not be negative")
    return number

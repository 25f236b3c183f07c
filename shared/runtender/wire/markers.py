"""Status markers: bytes of a stored object -> a validated `Marker`, and the plane's own marker -> bytes.

A marker that is too large, empty, not JSON, or of the wrong shape is no marker: the reader gets None and goes on.
Whose it is comes from the object's path alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from runtender.ids import parse_marker_object
from runtender.model import Job, Marker, MarkerStatus, Reason, Resource, Writer
from runtender.redaction import redacted
from runtender.wire.json_input import read_json_object

MAX_MARKER_BYTES = 64 * 1024
_MAX_DETAIL = 2000
_MAX_NUMBER = 1e15
MAX_EXIT_CODE = 2**31 - 1
KEYS = (
    "status", "exit_code", "instance", "zone", "detail", "boot_epoch", "exec_start_epoch", "end_epoch", "execute_s",
    "writer", "attempt", "placement", "signal", "preempted", "reason", "pod_uid", "log_uri",
)  # fmt: skip
"""Every key of a marker's body."""

_TERMINAL = {MarkerStatus.SUCCEEDED, MarkerStatus.FAILED, MarkerStatus.INTERRUPTED}


def parse_marker(name: str, body: bytes, recorded_at: datetime) -> Marker | None:
    """Read the marker stored at object `name`; None when it is not a valid one for that stage."""
    where = parse_marker_object(name)
    if where is None or not 0 < len(body) <= MAX_MARKER_BYTES:
        return None
    try:
        data = _without_secrets(read_json_object(body))
    except ValueError:
        return None
    status = _member(MarkerStatus, data.get("status"))
    if status is None or (status in _TERMINAL) != (where.stage == "terminal"):
        return None
    return _marker(data, status, recorded_at)


def _without_secrets(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Redact what is the end of a container's log: whatever the user's code printed."""
    return {**data, "detail": redacted(data["detail"])} if isinstance(data.get("detail"), str) else data


def _marker(data: Mapping[str, Any], status: MarkerStatus, recorded_at: datetime) -> Marker | None:
    exit_code = data.get("exit_code")
    if (
        isinstance(exit_code, bool)
        or not isinstance(exit_code, int | None)
        or abs(exit_code or 0) > MAX_EXIT_CODE
    ):
        return None
    if status is MarkerStatus.SUCCEEDED and exit_code not in {0, None}:
        return None
    return Marker(
        status=status,
        writer=_member(Writer, data.get("writer")) or Writer.GUEST,
        exit_code=exit_code,
        detail=_text(data, "detail")[:_MAX_DETAIL],
        reason=_member(Reason, data.get("reason")),
        signal=_text(data, "signal") or None,
        preempted=data.get("preempted") is True,
        instance=_text(data, "instance"),
        zone=_text(data, "zone"),
        boot_at=_epoch(data.get("boot_epoch")),
        exec_start_at=_epoch(data.get("exec_start_epoch")),
        end_at=_epoch(data.get("end_epoch")),
        execute_s=_number(data.get("execute_s")),
        log_uri=_text(data, "log_uri"),
        pod_uid=_text(data, "pod_uid"),
        recorded_at=recorded_at,
        body=data,
    )


def plane_marker(job: Job, row: Resource, *, reason: Reason | None, detail: str, now: datetime) -> bytes:
    """Return the terminal marker that the plane itself writes for a nonce (the tombstone).

    Without a reason it settles nothing: it only tells a worker that boots late to remove itself.
    """
    body = {
        "status": MarkerStatus.INTERRUPTED.value,
        "exit_code": None,
        "instance": row.name,
        "zone": row.location,
        "detail": detail[:_MAX_DETAIL],
        "boot_epoch": None,
        "exec_start_epoch": None,
        "end_epoch": int(now.timestamp()),
        "execute_s": None,
        "writer": Writer.PLANE.value,
        "attempt": job.attempt,
        "placement": row.placement,
        "signal": None,
        "preempted": reason is Reason.PREEMPTED,
        "reason": reason.value if reason else None,
        "pod_uid": None,
        "log_uri": None,
    }
    return json.dumps(body, sort_keys=True).encode() + b"\n"


def _member(kind: type[Any], value: Any) -> Any:
    try:
        return kind(value)
    except ValueError:
        return None


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MAX_NUMBER:
        return None
    return float(value)


def _epoch(value: Any) -> datetime | None:
    """Unix seconds -> moment; anything outside the years a run can lie in is no time."""
    number = _number(value)
    if number is None or not 0 < number < 32503680000:
        return None
    return datetime.fromtimestamp(number, tz=UTC)

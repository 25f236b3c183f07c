"""What is a marker and what is not; whose it is comes from its path alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from runtender.model import MarkerStatus, Reason, Writer
from runtender.wire.markers import MAX_MARKER_BYTES, parse_marker

AT = datetime(2026, 1, 1, tzinfo=UTC)
FOLDER = "runs/status/sf-x-0123456789ab-ml-a1/0123456789abcdef"
TERMINAL, STARTED = f"{FOLDER}/0.terminal.json", f"{FOLDER}/0.started.json"


def body(**changes):
    return json.dumps({"status": "SUCCEEDED", "exit_code": 0, "writer": "guest", **changes}).encode()


def test_a_guests_terminal_marker_is_read_whole():
    marker = parse_marker(
        TERMINAL,
        body(
            status="FAILED",
            exit_code=137,
            reason="OutOfMemory",
            detail="killed",
            instance="vm",
            zone="us-central1-a",
            boot_epoch=1767225600,
            exec_start_epoch=1767225700,
            end_epoch=1767225790,
            execute_s=90,
            log_uri="gs://b/l",
        ),
        AT,
    )
    assert marker is not None
    assert (marker.status, marker.exit_code, marker.reason) == (
        MarkerStatus.FAILED,
        137,
        Reason.OUT_OF_MEMORY,
    )
    assert (marker.execute_s, marker.recorded_at, marker.log_uri) == (90.0, AT, "gs://b/l")
    assert marker.boot_at == datetime(2026, 1, 1, tzinfo=UTC)


NO_MARKER = {
    "empty": b"",
    "not JSON": b"{",
    "a list": b"[]",
    "not UTF-8": b'{"status": "\xff"}',
    "nested too deep": b"[" * 60_000,
    "1 MB": b" " * 1_000_000,
    "just too large": body(detail="x" * MAX_MARKER_BYTES),
    "no status": b"{}",
    "a status nobody knows": body(status="DONE"),
    "a status of another type": body(status=["SUCCEEDED"]),
    "an exit code that is text": body(exit_code="0"),
    "an exit code that is true": body(exit_code=True),
    "an exit code beyond any platform": body(exit_code=10**30),
    "success with exit code 3": body(exit_code=3),
    "a time that is no number": body(end_epoch=float("nan")),
    "RUNNING in a terminal object": body(status="RUNNING", exit_code=None),
}


@pytest.mark.parametrize("data", NO_MARKER.values(), ids=NO_MARKER.keys())
def test_what_is_no_marker_is_ignored(data):
    assert parse_marker(TERMINAL, data, AT) is None


@pytest.mark.parametrize(
    "name",
    [
        "runs/status/sf-x-0123456789ab-ml-a1/0.terminal.json",
        "runs/status/sf-x-0123456789ab-ml-a1/nonce/0.terminal.json",
        f"other/{TERMINAL}",
        f"{TERMINAL}.bak",
        "",
    ],
)
def test_another_path_holds_no_marker(name):
    assert parse_marker(name, body(), AT) is None


def test_a_terminal_status_in_a_started_object_is_none():
    assert parse_marker(STARTED, body(), AT) is None
    assert parse_marker(STARTED, body(status="RUNNING", exit_code=None), AT) is not None


@pytest.mark.parametrize("epoch", [-5, 1e14, "soon", True, [1]])
def test_times_that_are_none_are_left_out(epoch):
    marker = parse_marker(TERMINAL, body(end_epoch=epoch, execute_s=epoch if epoch != -5 else None), AT)
    assert marker is not None
    assert marker.end_at is None


def test_unknown_words_fall_back():
    marker = parse_marker(TERMINAL, body(reason="Gremlins", writer="ghost", detail=7), AT)
    assert marker is not None
    assert (marker.reason, marker.writer, marker.detail) == (None, Writer.GUEST, "")

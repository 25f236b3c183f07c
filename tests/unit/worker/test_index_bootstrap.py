"""One worker of an Indexed Job as its pod runs it: the text behind `python -c`, and what the plane then reads."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from datetime import UTC, datetime

import pytest

from runtender.local.http import Fault, google_error
from runtender.model import MarkerStatus, Reason, Writer
from runtender.wire.markers import parse_marker
from runtender.worker.index_bootstrap import Tail, Told
from runtender.worker.source import bootstrap_source, index_source

KEY, NONCE = "sf-r-1-ml-a2", "0123456789abcdef"
FOLDER = f"runs/status/{KEY}/{NONCE}/"
LOGS = "runs/logs/k/n"
TOLD = {
    "SF_VM_RUNTIME": "gke",
    "SF_JOB_KEY": KEY,
    "SF_NONCE": NONCE,
    "SF_STATUS_BUCKET": "code",
    "SF_ATTEMPT": "2",
    "SF_PLACEMENT": "1",
    "SF_POD_UID": "uid-1",
    "SF_LOGS_URI": f"gs://code/{LOGS}",
    "JOB_COMPLETION_INDEX": "3",
    "HOSTNAME": "sf-r-1-3",
    "SF_PROJECT_ID": "p",
    "SF_PACKAGE_URI": "gs://code/runs/p.zip",
}
ENTRY = """
import os, signal, sys, time
def says_much():
    print("out", sys.argv[1:], flush=True)
    sys.stderr.write("err\\n")
def says_in_pieces():
    for sink, piece in ((1, "one "), (2, "another\\n"), (1, "line\\n"), (1, "50 %\\r"), (2, "a third\\n"), (1, "100 %")):
        os.write(sink, piece.encode())
        time.sleep(0.1)
def leaves():
    print("seven")
    sys.exit(7)
def breaks():
    raise RuntimeError("broken inside")
def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)
def sleeps():
    print("ready", flush=True)
    time.sleep(60)
def leaves_when_told(status):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(status))
    sleeps()
def leaves_with_0(): leaves_when_told(0)
def leaves_with_5(): leaves_when_told(5)
def floods():
    sys.stdout.write("x" * 8_000_000)
def leaves_a_child_behind():
    if (child := os.fork()) == 0:
        time.sleep(60)
    print(child, flush=True)
    os.write(2, b"last words, ")
    os.write(2, b"unfinished")
"""


# Calls a function of the above as the bootstrap does, which fetches them first: that takes it half a second.
CALL = """
_, _, entrypoint, *sys.argv[1:] = sys.argv
sys.exit(globals()[entrypoint.partition(":")[2]]())
"""
WHOLE = index_source()
WITHOUT_FETCHING = WHOLE.replace(repr(bootstrap_source()), repr(ENTRY + CALL))


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **TOLD, **more}


def command(function: str, *arguments: str, text: str = WITHOUT_FETCHING) -> list[str]:
    program = [sys.executable, "-c", text]
    return [*program, "--entrypoint", f"demo.entry:{function}", *arguments]


def run(
    function: str, *arguments: str, text: str = WITHOUT_FETCHING, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(function, *arguments, text=text),
        env=environment(**more),
        capture_output=True,
        text=True,
        check=False,
    )


def names(bucket) -> list[str]:
    return sorted(blob.name.removeprefix(FOLDER) for blob in bucket.list_blobs(prefix=FOLDER))


def marker(bucket, name: str):
    """The marker as the plane reads it."""
    return parse_marker(FOLDER + name, bucket.blob(FOLDER + name).download_as_bytes(), datetime.now(UTC))


@pytest.fixture
def staged(bucket):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("demo/__init__.py", "")
        archive.writestr("demo/entry.py", ENTRY)
    bucket.blob("runs/p.zip").upload_from_string(content.getvalue())
    return bucket


def test_the_bootstrap_is_the_command_of_the_whole_and_nowhere_else():
    assert WHOLE.count(repr(bootstrap_source())) == 1
    assert repr(bootstrap_source()) not in WITHOUT_FETCHING


def test_a_worker_does_its_work_and_tells_that_it_runs_and_how_it_ended(staged):
    before = int(time.time())

    done = run("says_much", "--models", "a,b", text=WHOLE)

    assert (done.returncode, done.stdout, done.stderr) == (0, "out ['--models', 'a,b']\n", "err\n")
    assert names(staged) == ["3.started.json", "3.terminal.json"]
    started, ended = marker(staged, "3.started.json"), marker(staged, "3.terminal.json")
    assert (started.status, started.writer, started.pod_uid) == (
        MarkerStatus.RUNNING,
        Writer.BOOTSTRAP,
        "uid-1",
    )
    assert (ended.status, ended.exit_code, ended.reason) == (MarkerStatus.SUCCEEDED, 0, Reason.COMPLETED)
    assert (ended.instance, ended.body["attempt"], ended.body["placement"]) == ("sf-r-1-3", 2, 1)
    assert before <= ended.boot_at.timestamp() <= ended.exec_start_at.timestamp() <= ended.end_at.timestamp()
    assert sorted(ended.detail.split("\n")) == ["err", "out ['--models', 'a,b']"]
    log = staged.blob(ended.log_uri.removeprefix("gs://code/"))
    assert log.name.startswith(f"{LOGS}/3.")
    assert len(log.download_as_bytes()) == len(done.stdout) + len(done.stderr)


def test_lines_that_come_in_pieces_are_kept_whole(staged):
    assert run("says_in_pieces").stdout == "one line\n50 %\n100 %"

    kept = marker(staged, "3.terminal.json").detail.splitlines()
    for stream in (["one line", "50 %", "100 %"], ["another", "a third"]):
        assert [line for line in kept if line in stream] == stream
    assert len(kept) == 5


@pytest.mark.parametrize(
    ("function", "text", "code", "signal_name", "words"),
    [
        pytest.param("leaves", WITHOUT_FETCHING, 7, None, "seven", id="an exit code"),
        pytest.param("breaks", WHOLE, 1, None, "RuntimeError: broken inside", id="a bug"),
        pytest.param("is_killed", WITHOUT_FETCHING, 137, "KILL", "", id="a signal"),
        pytest.param("is_not_there", WHOLE, 2, None, "has no function 'is_not_there'", id="nothing to call"),
    ],
)
def test_a_worker_that_fails_says_how(staged, function, text, code, signal_name, words):
    done = run(function, text=text)

    assert done.returncode == code
    ended = marker(staged, "3.terminal.json")
    assert (ended.status, ended.exit_code, ended.reason) == (MarkerStatus.FAILED, code, Reason.EXIT_CODE)
    assert (ended.signal, words in ended.detail) == (signal_name, True)


def test_a_failure_that_kubernetes_may_repeat_is_not_told_as_the_end(staged):
    done = run("leaves", SF_INDEX_RETRIES="2")

    assert (done.returncode, names(staged)) == (7, ["3.started.json"])
    assert "index 3 failed with 7; Kubernetes may start it again" in done.stderr


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        pytest.param("3.terminal.json", '{"status": "SUCCEEDED", "exit_code": 0}', 0, id="succeeded"),
        pytest.param("3.terminal.json", '{"status": "FAILED", "exit_code": 9}', 9, id="failed with a code"),
        pytest.param(
            "3.terminal.json", '{"status": "FAILED", "exit_code": null}', 1, id="failed without one"
        ),
        pytest.param("3.terminal.json", '{"status": "INTERRUPTED"}', 0, id="given up"),
        pytest.param("3.terminal.json", "no marker", 1, id="unreadable"),
        pytest.param("job.terminal.json", '{"status": "INTERRUPTED"}', 0, id="the whole Job given up"),
    ],
)
def test_an_index_whose_end_is_told_does_not_begin(bucket, name, body, status):
    bucket.blob(FOLDER + name).upload_from_string(body)

    # Nothing is staged: fetching it would fail with 2.
    done = run("says_much", text=WHOLE)

    assert (done.returncode, done.stdout) == (status, "")
    assert names(bucket) == [name]


def test_the_end_of_another_index_is_none_of_this_one(staged):
    staged.blob(f"{FOLDER}0.terminal.json").upload_from_string('{"status": "SUCCEEDED"}')

    assert run("says_much").returncode == 0
    assert names(staged) == ["0.terminal.json", "3.started.json", "3.terminal.json"]


def test_an_index_that_is_started_again_keeps_its_first_start(staged):
    staged.blob(f"{FOLDER}3.started.json").upload_from_string("the first")

    assert run("says_much").returncode == 0
    assert staged.blob(f"{FOLDER}3.started.json").download_as_bytes() == b"the first"
    assert marker(staged, "3.terminal.json").status is MarkerStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("function", "status"),
    [
        pytest.param("sleeps", 143, id="a command that knows nothing of signals"),
        pytest.param("leaves_with_5", 5, id="one that leaves with a code of its own"),
        pytest.param("leaves_with_0", 143, id="one that leaves with 0 is not taken to be done"),
    ],
)
def test_an_index_that_is_told_to_end_is_left_to_start_again(staged, function, status):
    with subprocess.Popen(command(function), env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == status

    assert names(staged) == ["3.started.json"]
    logs = [blob.download_as_bytes() for blob in staged.list_blobs(prefix=LOGS)]
    assert logs == [b"ready\n"]


@pytest.mark.parametrize(("function", "status"), [("says_much", 0), ("leaves", 7)])
def test_markers_that_cannot_be_stored_change_nothing_about_the_end(staged, upload_faults, function, status):
    upload_faults += [Fault(answer=google_error(403, "forbidden", "no access"))] * 3

    done = run(function)

    assert (done.returncode, names(staged), upload_faults) == (status, [], [])
    assert "3.terminal.json is not stored: HTTP 403" in done.stderr


def test_a_command_that_leaves_a_process_behind_has_ended_all_the_same(staged):
    done = run("leaves_a_child_behind", text=WITHOUT_FETCHING.replace("_DRAIN_S = 5.0", "_DRAIN_S = 0.5"))

    # Raises if it has ended: then it was waited for.
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 0
    ended = marker(staged, "3.terminal.json")
    assert ended.exit_code == 0
    assert ended.detail.endswith("\nlast words, unfinished")


def test_much_output_is_passed_on_whole_and_kept_in_part(staged):
    done = run("floods")

    assert (done.returncode, len(done.stdout)) == (0, 8_000_000)
    uri = marker(staged, "3.terminal.json").log_uri
    assert len(staged.blob(uri.removeprefix("gs://code/")).download_as_bytes()) == 5_000_000


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param({"SF_VM_RUNTIME": "gce"}, id="on a VM, which has its own markers"),
        pytest.param({"SF_NONCE": ""}, id="a Job made by hand"),
        pytest.param({"SF_STATUS_BUCKET": ""}, id="no bucket for markers"),
    ],
)
def test_without_a_try_to_speak_for_it_is_the_command_itself(staged, missing):
    done = run("leaves", "x", **missing)

    assert (done.returncode, done.stdout, done.stderr) == (7, "seven\n", "")
    assert [blob.name for blob in staged.list_blobs(prefix="runs/")] == ["runs/p.zip"]


def test_an_index_that_kubernetes_did_not_number_is_the_first():
    told = Told.read({name: value for name, value in TOLD.items() if name != "JOB_COMPLETION_INDEX"})

    assert told is not None
    assert told.index == 0


def test_a_detail_is_the_last_lines_that_fit_a_marker():
    tail = Tail()
    tail.add(1, b"old\n" * 30 + "é".encode() * 2000 + b"\nlast\n")

    assert len(tail.detail()) == 800
    assert tail.detail().endswith("é\nlast")
    assert "old" not in tail.detail()

"""Google's emulators: where they are found, what is said where they are not, and that none outlives whoever started it.

A program that only answers HTTP stands in for the emulator here; the contract suites run on the real ones.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runtender.local.emulators import (
    FIRESTORE,
    PUBSUB,
    Found,
    RunningEmulator,
    emulator_variables,
    find_emulators,
)
from runtender.local.errors import LocalCloudError
from runtender.local.watch import processes_of

PATIENCE_S = 30.0

ANSWERS_HTTP = """
import http.server, sys

class Ok(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

port = int(sys.argv[-1].removeprefix("--port="))
http.server.HTTPServer(("127.0.0.1", port), Ok).serve_forever()
"""

STARTS_ONE_AND_WAITS = """
import sys, time
from pathlib import Path
from runtender.local.emulators import FIRESTORE, Found, RunningEmulator

folder = Path(sys.argv[1])
command = (sys.executable, str(folder / "emulator.py"))
RunningEmulator(Found(emulator=FIRESTORE, command=command), folder, folder / "log").await_ready()
print("ready", flush=True)
time.sleep(600)
"""


def a_program(folder: Path, name: str, text: str = "#!/bin/sh\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(text)
    program.chmod(0o755)
    return program


def an_sdk(folder: Path, *, pubsub: str = "0.8.20") -> Path:
    for jar in (
        "cloud-firestore-emulator/cloud-firestore-emulator.jar",
        f"pubsub-emulator/lib/cloud-pubsub-emulator-{pubsub}-all.jar",
    ):
        path = folder / "platform" / jar
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


@pytest.fixture
def path_with_java(tmp_path: Path) -> Path:
    return a_program(tmp_path / "path", "java").parent


@pytest.fixture
def a_found(tmp_path: Path) -> Callable[[str], Found]:
    """An emulator that is the given Python program."""

    def found(source: str) -> Found:
        program = tmp_path / "emulator.py"
        program.write_text(source)
        return Found(emulator=FIRESTORE, command=(sys.executable, str(program)))

    return found


def test_the_sdk_is_the_one_that_gcloud_belongs_to(tmp_path: Path, path_with_java: Path) -> None:
    sdk = an_sdk(tmp_path / "sdk")
    (path_with_java / "gcloud").symlink_to(a_program(sdk / "bin", "gcloud"))
    firestore, pubsub = find_emulators({"PATH": str(path_with_java)})
    assert firestore.command[0] == str(path_with_java / "java")
    assert f"{sdk}/{FIRESTORE.jar}" in firestore.command
    assert firestore.command[-1].endswith(".CloudFirestore")
    assert pubsub.command[-1].startswith(f"{sdk}/platform/pubsub-emulator/lib/")


def test_a_wrapper_of_gcloud_is_asked_where_the_sdk_is(tmp_path: Path, path_with_java: Path) -> None:
    sdk = an_sdk(tmp_path / "sdk")
    a_program(path_with_java, "gcloud", f"#!/bin/sh\necho {sdk}\n")
    firestore, _ = find_emulators({"PATH": str(path_with_java)})
    assert f"{sdk}/{FIRESTORE.jar}" in firestore.command


def test_the_sdk_may_be_named_and_the_newest_jar_is_taken(tmp_path: Path, path_with_java: Path) -> None:
    an_sdk(tmp_path / "sdk", pubsub="0.8.19")
    sdk = an_sdk(tmp_path / "sdk", pubsub="0.8.20")
    _, pubsub = find_emulators({"PATH": str(path_with_java), "CLOUDSDK_ROOT_DIR": str(sdk)})
    assert pubsub.command[-1].endswith("cloud-pubsub-emulator-0.8.20-all.jar")


def test_an_emulator_that_runs_already_needs_neither_java_nor_sdk() -> None:
    environment = {
        "FIRESTORE_EMULATOR_HOST": "localhost:1",
        "PUBSUB_EMULATOR_HOST": "localhost:2",
        "HOME": "/",
    }
    assert find_emulators(environment) == (
        Found(emulator=FIRESTORE, host="localhost:1"),
        Found(emulator=PUBSUB, host="localhost:2"),
    )
    assert emulator_variables(environment) == {
        "FIRESTORE_EMULATOR_HOST": "localhost:1",
        "PUBSUB_EMULATOR_HOST": "localhost:2",
    }


def test_all_that_is_missing_is_said_at_once_with_what_to_do() -> None:
    with pytest.raises(LocalCloudError) as raised:
        find_emulators({"PATH": "/nowhere"})
    firestore, pubsub = str(raised.value).splitlines()
    for words in ("gcloud components install cloud-firestore-emulator", "set FIRESTORE_EMULATOR_HOST"):
        assert words in firestore
    for words in ("gcloud components install pubsub-emulator", "google-cloud-cli-pubsub-emulator"):
        assert words in pubsub


def test_a_machine_without_java_is_told_so(tmp_path: Path) -> None:
    environment = {"PATH": "/nowhere", "CLOUDSDK_ROOT_DIR": str(an_sdk(tmp_path / "sdk"))}
    with pytest.raises(LocalCloudError, match="needs Java 11 or newer"):
        find_emulators(environment, [PUBSUB])


def test_an_emulator_answers_until_it_is_closed(tmp_path: Path, a_found: Callable[[str], Found]) -> None:
    with RunningEmulator(a_found(ANSWERS_HTTP), tmp_path, tmp_path / "log") as running:
        running.await_ready()
        assert running.is_ours
        assert len(processes_of(tmp_path)) >= 2, "a shell and what it waits for"
    running.close()
    assert processes_of(tmp_path) == []


def test_an_emulator_that_does_not_start_leaves_its_last_words(
    tmp_path: Path, a_found: Callable[[str], Found]
) -> None:
    found = a_found("raise SystemExit('this Java is too old')")
    with (
        RunningEmulator(found, tmp_path, tmp_path / "log") as running,
        pytest.raises(LocalCloudError, match=r"(?s)firestore emulator did not start.*this Java is too old"),
    ):
        running.await_ready()
    assert processes_of(tmp_path) == []


def test_an_emulator_that_is_said_to_run_and_does_not_is_named(tmp_path: Path) -> None:
    running = RunningEmulator(Found(emulator=PUBSUB, host="127.0.0.1:9"), tmp_path, tmp_path / "log")
    with pytest.raises(LocalCloudError, match=r"answers at PUBSUB_EMULATOR_HOST=127.0.0.1:9; unset it"):
        running.await_ready()
    assert not running.is_ours


def test_an_emulator_ends_with_whoever_started_it(tmp_path: Path) -> None:
    (tmp_path / "emulator.py").write_text(ANSWERS_HTTP)
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE_AND_WAITS, str(tmp_path)], stdout=subprocess.PIPE, cwd="/"
    )
    assert starter.stdout is not None
    assert starter.stdout.readline() == b"ready\n"
    os.kill(starter.pid, signal.SIGKILL)
    starter.communicate()
    deadline = time.monotonic() + PATIENCE_S
    while processes_of(tmp_path):
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.05)

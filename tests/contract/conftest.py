"""Google's emulators for the contract suites: found, started once per test process, and always ended.

A Google Cloud SDK may have them (java, nothing to fetch). Elsewhere the tests marked `emulator` are skipped, and the
summary says why. RUNTENDER_TESTS_NO_EMULATOR=1 hides them on a machine that has them.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import pytest

_HIDE = "RUNTENDER_TESTS_NO_EMULATOR"
_SMALL_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Ends the emulator when this process ends, however it ends, and its pipe with it. The shell stays its parent, so that
# its number is nobody else's by then. (The kernel could do that if a function were run between fork and exec, but
# gRPC's threads do not survive such a fork.)
_WITH_ITS_PARENT = '"$@" </dev/null & read -r _; kill -9 $!; wait'
_START_S = 45
_STOP_S = 10


@dataclass(frozen=True, kw_only=True)
class Emulator:
    """One of Google's emulators: where it runs already, or which jar of the SDK to start and how."""

    variable: str
    jar: str
    arguments: tuple[str, ...]

    def missing(self) -> str | None:
        """Return why it cannot be used here; None when it can."""
        if os.environ.get(_HIDE):
            return f"Google's emulators are hidden by {_HIDE}"
        if os.environ.get(self.variable) or (shutil.which("java") and self.installed()):
            return None
        return f"no {self.jar} of a Google Cloud SDK, or no java: install both, or set {self.variable}"

    def installed(self) -> Path | None:
        """Return the newest jar of the SDK that `gcloud` belongs to."""
        gcloud = shutil.which("gcloud")
        if gcloud is None:
            return None
        sdk = Path(gcloud).resolve().parents[1]
        return max(sdk.glob(self.jar), default=None)

    @contextmanager
    def running(self, folder: Path) -> Iterator[str]:
        """Yield `host:port`; an emulator that was started here is stopped again."""
        if host := os.environ.get(self.variable):
            yield host
            return
        port = _free_port()
        # Not through gcloud: it would leave the java process behind.
        java = ["java", *_SMALL_JVM, *(argument.format(jar=self.installed()) for argument in self.arguments)]
        log = folder / "log"
        with log.open("wb") as output:
            shell = subprocess.Popen(
                ["sh", "-c", _WITH_ITS_PARENT, "emulator", *java, "--host=127.0.0.1", f"--port={port}"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                # An interrupt from the keyboard is for the tests; they end the emulator.
                start_new_session=True,
            )
        try:
            _await_answer(port, log)
            yield f"127.0.0.1:{port}"
        finally:
            shell.communicate(timeout=_STOP_S)


_EMULATORS = {
    "firestore": Emulator(
        variable="FIRESTORE_EMULATOR_HOST",
        jar="platform/cloud-firestore-emulator/cloud-firestore-emulator.jar",
        arguments=("-cp", "{jar}", "com.google.cloud.datastore.emulator.firestore.CloudFirestore"),
    ),
    "pubsub": Emulator(
        variable="PUBSUB_EMULATOR_HOST",
        jar="platform/pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar",
        arguments=("-jar", "{jar}"),
    ),
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    # Not in a fixture: from here, the summary folds all skips for one reason into one line.
    for mark in item.iter_markers("emulator"):
        if (reason := _EMULATORS[mark.args[0]].missing()) is not None:
            pytest.skip(reason)


@pytest.fixture(scope="session")
def firestore_emulator(tmp_path_factory):
    """Yield the `host:port` of Google's Firestore emulator. For tests marked `emulator("firestore")`."""
    with _EMULATORS["firestore"].running(tmp_path_factory.mktemp("firestore")) as host:
        yield host


@pytest.fixture(scope="session")
def pubsub_emulator(tmp_path_factory):
    """Yield the `host:port` of Google's Pub/Sub emulator. For tests marked `emulator("pubsub")`."""
    with _EMULATORS["pubsub"].running(tmp_path_factory.mktemp("pubsub")) as host:
        yield host


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _await_answer(port: int, log: Path) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5):
                return
        except (OSError, HTTPException):
            # Its port is open before it speaks HTTP.
            time.sleep(0.1)
    pytest.fail(f"the emulator did not start:\n{log.read_text(errors='replace')[-2000:]}")

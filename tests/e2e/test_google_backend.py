"""The local cloud on Google's own Firestore and Pub/Sub emulators: the demo, scenarios, every verb, and who watches a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runtender.local.backend import BackendName
from runtender.local.cloud import LocalCloud
from runtender.local.scenarios import find_scenario
from runtender.local.watch import processes_of
from runtender.model import Outcome, Phase

pytestmark = [pytest.mark.e2e, pytest.mark.emulator("firestore", "pubsub"), pytest.mark.timeout(300)]

PATIENCE_S = 180.0
RUNTENDER = str(Path(sys.executable).with_name("runtender"))
# Nobody listens there: whoever asked a proxy for the loopback address would fail.
DEAD_PROXY = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}

Row = Mapping[str, Any]
Runtender = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def runtender(tmp_path: Path) -> Iterator[Runtender]:
    """The command, in a folder of its own whose cloud is down afterwards, and in an environment with a dead proxy."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [RUNTENDER, *arguments],
            cwd=tmp_path,
            env={**os.environ, **DEAD_PROXY, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    yield run
    run("local", "down")


def answered(ended: subprocess.CompletedProcess[str], exit_code: int = 0) -> Any:
    """Return what a command printed as JSON."""
    assert ended.returncode == exit_code, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param("first-placement-out-of-stock", marks=pytest.mark.slow),
        "events-three-times-out-of-order",
        pytest.param("functions-killed-after-the-insert", marks=pytest.mark.slow),
        pytest.param("preempted-mid-run", marks=pytest.mark.slow),
    ],
)
def test_a_scenario_ends_as_on_the_embedded_backend(
    runtender: Runtender, scenario: str, tmp_path: Path
) -> None:
    """The first of them is the demo's own: the whole forecast, on a machine and on pods."""
    demo = runtender("local", "demo", "--backend", "google", "--scenario", scenario, "--format", "json")
    document = answered(demo, int(find_scenario(scenario).expect["exit_code"]))
    assert document["backend"] == "google"
    assert [each for each in document["expectations"] if not each["met"]] == [], demo.stderr
    assert set(document["leftovers"].values()) == {0}
    assert list(tmp_path.iterdir()) == [], "its folder is gone"


def test_every_verb_works_on_a_cloud_that_is_up_and_nothing_outlives_it(
    runtender: Runtender, tmp_path: Path
) -> None:
    up = answered(runtender("local", "up", "--backend", "google", "--time-scale", "20", "--format", "json"))
    assert up["backend"] == "google"
    status = answered(runtender("local", "status", "--format", "json"))
    assert {"firestore", "pubsub", "storage", "compute", "functions"} <= status["components"].keys()
    assert {part["health"] for part in status["components"].values()} == {"answers"}

    run_id = submitted(runtender, tmp_path, "echo hello from $SF_RUN_ID")["run_id"]
    answered(runtender("wait", run_id, "--format", "json"))
    assert f"hello from {run_id}" in runtender("logs", run_id).stdout
    endless = submitted(runtender, tmp_path, "sleep 600")["run_id"]
    answered(runtender("cancel", endless, "--format", "json"))
    assert runtender("wait", endless).returncode == 6
    described = answered(runtender("describe", endless, "--format", "json"))
    assert described["run"]["outcome"] == "CANCELLED"
    listed = answered(runtender("list", "--format", "json"))
    assert {run["run_id"] for run in listed["runs"]} == {run_id, endless}

    down = answered(runtender("local", "down", "--format", "json"))
    assert down == {"running": False, "folder": str(tmp_path), "stopped": True, "processes_left": 0}
    assert processes_of(tmp_path) == []


def test_a_killed_supervisor_takes_the_emulators_along(runtender: Runtender, tmp_path: Path) -> None:
    up = answered(runtender("local", "up", "--backend", "google", "--format", "json"))
    data = tmp_path / ".runtender" / "cloud"
    assert len(processes_of(data)) >= 2
    os.kill(up["supervisor"], signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while processes_of(data):
        assert time.monotonic() < deadline, "something is still there"
        time.sleep(0.1)


def submitted(runtender: Runtender, folder: Path, script: str) -> Any:
    task = folder / "task.json"
    task.write_text(json.dumps({"name": "task", "command": ["sh", "-c", script]}))
    return answered(runtender("submit", "--kind", "task", str(task), "--format", "json"))


class Witness:
    """An ordinary listener of google-cloud-firestore on a job; keeps each history it is shown."""

    def __init__(self, client: Any, job_key: str) -> None:
        self.histories: list[Sequence[Row]] = []
        self._watch = client.document(f"jobs/{job_key}").on_snapshot(self._look)

    def _look(self, documents: Sequence[Any], _changes: object, _read_at: object) -> None:
        self.histories += [document.to_dict()["history"] for document in documents if document.exists]

    def leave(self) -> None:
        self._watch.unsubscribe()


def told(histories: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows in the order in which they became known; none that was known may have changed."""
    rows: list[Row] = []
    for history in histories:
        assert list(history[: len(rows)]) == rows
        rows += history[len(rows) :]
    return rows


@contextmanager
def a_client(cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of somebody who knows Firestore, and not us."""
    from google.cloud import firestore  # noqa: PLC0415 - only where it is used

    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", cloud.environment["FIRESTORE_EMULATOR_HOST"])
    client = firestore.Client(project=cloud.settings.project)
    yield client
    client.close()


def test_a_listener_sees_every_row_of_a_runs_history_in_order_also_where_it_skips_versions(
    tmp_path: Path, caller_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        LocalCloud(
            tmp_path / "data",
            logs=tmp_path / "logs",
            scenario=find_scenario("first-placement-out-of-stock"),
            time_scale=20,
            backend=BackendName.GOOGLE,
        ) as cloud,
        a_client(cloud, monkeypatch) as client,
    ):
        caller = caller_of(cloud)
        job = caller.task("sh", "-c", "sleep 1")
        faithful, fickle = Witness(client, job.job_key), Witness(client, job.job_key)
        caller.await_that(lambda: bool(fickle.histories))
        fickle.leave()
        job = caller.await_phase(job, Phase.DONE)
        back = Witness(client, job.job_key)
        stored = client.document(f"jobs/{job.job_key}").get().to_dict()["history"]
        caller.await_that(lambda: faithful.histories[-1:] == back.histories[-1:] == [stored])
        faithful.leave()
        back.leave()

    assert job.outcome is Outcome.SUCCEEDED
    assert told(faithful.histories) == stored
    assert told(faithful.histories[::3] + faithful.histories[-1:]) == stored, "two of three versions skipped"
    assert told(fickle.histories + back.histories) == stored, "away from the first row to the last"
    assert [row["phase"] for row in stored if row["phase"] != "PROVISIONING"][-3:] == [
        "RUNNING",
        "STOPPING",
        "DONE",
    ]
    assert len(stored) >= 5
    assert sorted(row["at"] for row in stored) == [row["at"] for row in stored]

"""Functions that are killed (SIGKILL) in the middle of their work: those that follow finish it, with one machine.

That they are killed around a call is a scenario's part (`test_scenarios`); here it is in the midst of a commit, and right
after the plane has forbidden a worker to speak.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runtender.local.cloud import LocalCloud
from runtender.local.scenario import Scenario, parse_scenario
from runtender.local.scenarios import FAIR
from runtender.model import Outcome, Phase, Reason

pytestmark = pytest.mark.e2e

# Python loads a module of this name at its start. It kills the process that is about to commit what it has written of a
# run: the first one only, because the second cannot make the file.
KILL_IN_COMMIT = """
import os, signal, sqlite3, sys

written = False

def look(statement):
    global written
    words = statement.split()
    written = written or (words[:1] == ["INSERT"] and "'runs/" in statement)
    if written and words == ["COMMIT"]:
        try:
            os.close(os.open({flag!r}, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

def watched(*args, connect=sqlite3.connect, **options):
    connection = connect(*args, **options)
    connection.set_trace_callback(look)
    return connection

if "runtender.local.functions_host" in sys.orig_argv:
    sqlite3.connect = watched
"""

KILL_AFTER_TOMBSTONE = """
name: killed-after-the-tombstone
calls:
  - method: storage.objects.insert
    by: plane
    name: "*.terminal.json"
    first: 1
    answer: functions_killed
    applied: true
"""


@contextmanager
def a_cloud(folder: Path, caller_of: Any, scenario: Scenario = FAIR) -> Iterator[Any]:
    with LocalCloud(folder / "data", logs=folder / "logs", scenario=scenario, time_scale=40) as running:
        yield caller_of(running)


def test_functions_killed_in_the_middle_of_a_submits_commit_take_it_in_once(
    tmp_path: Path, caller_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = tmp_path / "killed"
    (tmp_path / "sitecustomize.py").write_text(KILL_IN_COMMIT.format(flag=str(flag)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with a_cloud(tmp_path, caller_of) as caller:
        job = caller.await_phase(caller.task("true"), Phase.DONE)
        assert flag.exists(), "nobody was killed"
        assert caller.cloud.functions.starts == 2
        assert (job.outcome, job.reason) == (Outcome.SUCCEEDED, Reason.COMPLETED)
        assert len(caller.cloud.store.find("runs")) == 1
        assert caller.cloud.inserts() == 1
        caller.await_that(lambda: set(caller.cloud.leftovers().values()) == {0})


def test_functions_killed_between_tombstone_and_save_end_the_run_as_it_says(
    tmp_path: Path, caller_of: Any
) -> None:
    with a_cloud(tmp_path, caller_of, parse_scenario(KILL_AFTER_TOMBSTONE)) as caller:
        job = caller.await_phase(caller.task("sleep", "600"), Phase.RUNNING)
        caller.publish({"action": "cancel", "run_id": job.run_id})
        job = caller.await_phase(job, Phase.DONE)
        assert caller.cloud.functions.starts == 2
        assert (job.outcome, job.reason) == (Outcome.CANCELLED, Reason.CANCELLED)
        assert caller.cloud.inserts() == 1
        caller.await_that(lambda: set(caller.cloud.leftovers().values()) == {0})

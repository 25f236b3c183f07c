"""The command as a process of its own, in the folder of a local cloud: what it finds there, and how it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

from runtender.local.objects.core import ObjectsCore
from runtender.local.objects.server import ObjectServer
from runtender.local.store import SqliteStore
from runtender.local.topics import TopicsCore, TopicsServer
from runtender.model import Outcome
from runtender.ports import Create
from runtender.wire.documents import job_path, job_to_document, run_path, run_to_document


@pytest.fixture
def cloud(home, make):
    """The store, objects and topics of a local cloud, and the state file that leads to them; no functions."""
    objects = ObjectsCore()
    for bucket in ("local-code", "local-warehouse"):
        objects.make_bucket(bucket, make.ACCEPTED)
    core = TopicsCore(project="local", topics=["sf-submit"], subscriptions=[])
    with ObjectServer(objects) as storage, TopicsServer(core) as topics:
        environment = {
            "SF_BACKEND": "embedded",
            "SF_PROJECT_ID": "local",
            "SF_CODE_BUCKET": "local-code",
            "SF_STORE_PATH": str(home.folder / "store.db"),
            "SF_TOPICS_ENDPOINT": topics.url,
            "STORAGE_EMULATOR_HOST": storage.url,
        }
        home.write_state({"environment": environment})
        yield topics


@pytest.fixture
def start(tmp_path, cloud):
    """Start the command below the local cloud's folder."""
    folder = tmp_path / "below"
    folder.mkdir()

    with ExitStack() as started:

        def start(*arguments):
            program = "from runtender.cli.main import cli; cli()"
            process = subprocess.Popen(
                [sys.executable, "-c", program, *arguments],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            # A process that a failed test left behind ends here.
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield start


def test_a_command_finds_store_objects_and_topics_of_the_folder(start, cloud, tmp_path):
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"name": "hello", "image": "example/hello:1"}))
    submitted = start("submit", str(task), "--kind", "task", "--no-confirm", "--format", "json")
    listed = start("list", "--format", "json")
    submitted_out, submitted_err = submitted.communicate(timeout=60)
    listed_out, listed_err = listed.communicate(timeout=60)

    assert (submitted.returncode, listed.returncode) == (0, 0), submitted_err + listed_err
    assert json.loads(submitted_out)["state"] == "published"
    assert json.loads(listed_out) == {"runs": []}
    assert cloud.counts()["topics"] == {"sf-submit": 1}


def test_ctrl_c_ends_the_command_and_not_the_run(start, tmp_path, make):
    store, job = SqliteStore(tmp_path / "store.db"), make.job()
    store.commit(
        [
            Create(path=run_path(job.run_id), data=run_to_document(make.run(job))),
            Create(path=job_path(job.job_key), data=job_to_document(job)),
        ]
    )
    waiting = start("wait", job.run_id)
    # The first line says that it is watching.
    first = waiting.stderr.readline()
    os.kill(waiting.pid, signal.SIGINT)
    out, err = waiting.communicate(timeout=60)
    store.close()

    assert "statistical: RUNNING" in first
    assert (waiting.returncode, out) == (130, "")
    assert f"run {job.run_id} goes on" in err


def test_a_reader_that_goes_away_is_no_traceback(start, tmp_path, make):
    store = SqliteStore(tmp_path / "store.db")
    for number in range(40):
        job = make.ended_job(Outcome.SUCCEEDED, run_id=f"run-{number}")
        store.commit(
            [Create(path=run_path(job.run_id), data=run_to_document(make.run(job, run_id=job.run_id)))]
        )
    store.close()
    listing = start("list", "--limit", "1000", "--format", "yaml")
    listing.stdout.close()
    _, err = listing.communicate(timeout=60)

    assert "Traceback" not in err

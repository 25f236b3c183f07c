"""The Python API: submit, get, watch, cancel, by the same ways as the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import runtender as package
from runtender import api
from runtender.errors import Rejected, Retryable
from runtender.local.store import MemoryStore
from runtender.model import HistoryRow, Outcome, Phase
from runtender.ports import Update
from runtender.wire.documents import job_path, job_to_document, run_path, run_to_document


@pytest.fixture
def plane(world, intake):
    """The world with the plane's own intake behind its topic."""
    return replace(world, topics=intake)


@pytest.fixture
def config(flights):
    return json.loads(flights.read_text())


class TestSubmit:
    def test_a_config_becomes_a_run(self, plane, config, store):
        asked: dict[str, Any] = {
            "labels": {"team": "demand"},
            "priority": 3,
            "run_limit": timedelta(minutes=90),
        }
        receipt = api.submit(config, **asked, plane=plane)

        assert (receipt.duplicate, receipt.notes) == (False, ())
        record = api.get(receipt.run_id, plane=plane)
        assert [job.plan.priority for job in record.latest] == [3]
        assert record.run.labels == {"team": "demand"}
        assert record.run.limits.run == timedelta(minutes=90)
        assert {job.family: job.job_key for job in record.latest} == receipt.jobs

    @pytest.mark.parametrize("kind", [Path, str], ids=["path", "text"])
    def test_a_file_is_read(self, plane, flights, kind):
        assert api.submit(kind(flights), plane=plane).run_id.startswith("flights-")

    def test_the_same_request_again_changes_nothing(self, plane, config, store):
        receipts = [api.submit(config, request_id="mine", plane=plane) for _ in range(2)]

        assert receipts[0] == receipts[1]
        assert len(store.find("jobs")) == 1

    def test_a_config_that_has_run_before_is_a_duplicate(self, plane, config):
        first, second = (api.submit(config, plane=plane) for _ in range(2))

        assert (second.run_id, second.duplicate) == (first.run_id, True)
        assert "send force: true" in second.notes[0]

    def test_a_task_is_named_by_a_word(self, plane):
        receipt = api.submit({"name": "hi", "image": "i", "command": ["true"]}, kind="task", plane=plane)

        assert list(receipt.jobs) == ["task"]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"modles": []}, "modles: "),
            ({"models": {1, 2}}, "config: holds what JSON cannot say"),
            ({"note": float("nan")}, "config: holds what JSON cannot say"),
        ],
        ids=["a field", "a set", "no number"],
    )
    def test_what_is_wrong_is_told_before_anything_is_published(self, plane, config, intake, change, words):
        with pytest.raises(Rejected) as caught:
            api.submit({**config, **change}, plane=plane)

        assert words in str(caught.value)
        assert intake.messages == 0

    def test_what_the_plane_rejects_is_raised_with_its_words(self, world, mailbox, config):
        mailbox.answer_state, mailbox.errors = "rejected", ["image: is missing", "another"]

        with pytest.raises(Rejected) as caught:
            api.submit(config, plane=world)
        assert [str(fault) for fault in caught.value.faults] == ["image: is missing", "another"]

    def test_a_silent_plane_is_told_apart_and_its_request_can_be_sent_again(self, world, mailbox, config):
        mailbox.answer_state = None

        with pytest.raises(api.NoAnswer) as caught:
            api.submit(config, request_id="mine", plane=world)
        assert caught.value.request_id == "mine"


class TestCancel:
    def test_the_plane_is_asked(self, plane, config, store):
        run_id = api.submit(config, plane=plane).run_id

        assert api.cancel(run_id, plane=plane).run_id == run_id
        assert api.get(run_id, plane=plane).latest[0].cancel_requested


@pytest.mark.parametrize("call", [api.get, api.watch, api.cancel])
def test_an_unknown_run_is_an_error_of_its_own(world, call):
    with pytest.raises(api.UnknownRun) as caught:
        call("unknown-0123456789ab", plane=world)
    assert caught.value.run_id == "unknown-0123456789ab"


class Script:
    """A store in which somebody writes a job's next version at each of its steps."""

    def __init__(self, store, make, steps):
        self._store, self._make = store, make
        self.job = make.job(history=(), version=1, phase=Phase.PENDING)
        self._steps = steps

    def play(self, pause_s):
        for phase, outcome in self._steps:
            time.sleep(pause_s)
            row = HistoryRow(at=self._make.ACCEPTED, phase=phase, outcome=outcome, cause=f"to {phase}")
            self.job = replace(
                self.job,
                phase=phase,
                outcome=outcome,
                history=(*self.job.history, row),
                version=self.job.version + 1,
                wake_at=None,
            )
            self._write()

    def _write(self):
        header, body = self._store.get(run_path(self.job.run_id)), self._store.get(job_path(self.job.job_key))
        run = self._make.run(self.job, version=self.job.version)
        self._store.commit(
            [
                Update(
                    path=body.path, fields=job_to_document(self.job), stamp=body.stamp, remove=("wake_at",)
                ),
                Update(path=header.path, fields=run_to_document(run), stamp=header.stamp),
            ]
        )


STEPS = [
    (Phase.PROVISIONING, None),
    (Phase.AWAITING_CAPACITY, None),
    (Phase.PROVISIONING, None),
    (Phase.RUNNING, None),
    (Phase.STOPPING, Outcome.SUCCEEDED),
    (Phase.DONE, Outcome.SUCCEEDED),
]


@pytest.fixture
def played(store, make, keep):
    """Write the steps of a run while somebody watches it; return what they see."""

    def play(watched, pause_s):
        script = Script(store, make, STEPS)
        keep(make.run(script.job, version=1), script.job)
        player = threading.Thread(target=script.play, args=(pause_s,))
        records = watched()
        player.start()
        seen = list(records)
        player.join()
        return seen

    return play


class TestWatch:
    # Slower and faster than a watch looks: then it leaves out versions.
    @pytest.mark.parametrize("pause_s", [0.12, 0.0], ids=["each", "some"])
    def test_versions_come_in_order_and_no_history_row_is_missed(self, world, make, played, pause_s):
        seen = played(lambda: api.watch(make.RUN_ID, to_rest=True, plane=world), pause_s)

        headers = [record.run.version for record in seen]
        jobs = [job.version for record in seen for job in record.jobs]
        assert headers == sorted(headers)
        assert jobs == sorted(jobs)
        rows = [row for record in seen for job in record.jobs for row in job.history]
        assert list(dict.fromkeys(row.cause for row in rows)) == list(
            dict.fromkeys(f"to {phase}" for phase, _ in STEPS)
        )
        assert seen[-1].run.families["statistical"].phase is Phase.DONE
        assert len(seen[-1].jobs[0].history) == len(STEPS)

    def test_it_ends_with_the_outcome_unless_it_is_to_see_the_end_of_everything(self, world, make, played):
        seen = played(lambda: api.watch(make.RUN_ID, plane=world), 0.12)

        assert [record.run.outcome for record in seen][-2:] == [None, Outcome.SUCCEEDED]

    def test_a_lost_connection_is_taken_up_again(self, world, make, played, store):
        lossy = Lossy(store)
        world = replace(world, store=lossy, patience=timedelta(seconds=30))
        seen = played(lambda: api.watch(make.RUN_ID, to_rest=True, plane=world), 0.12)

        assert lossy.losses > 3
        versions = [job.version for record in seen for job in record.jobs]
        assert versions == sorted(versions)
        assert len(seen[-1].jobs[0].history) == len(STEPS)

    def test_patience_has_an_end(self, world, make, keep, store):
        job = make.job()
        keep(make.run(job), job)
        world = replace(world, store=Lossy(store, always=True), patience=timedelta(seconds=0.3))

        with pytest.raises(Retryable, match="connection was lost"):
            list(api.watch(make.RUN_ID, plane=world))

    def test_who_stops_looking_leaves_no_thread_behind(self, world, make, keep):
        job = make.job()
        keep(make.run(job), job)
        records = api.watch(make.RUN_ID, plane=world)
        next(records)
        records.close()
        watchers = [thread for thread in threading.enumerate() if thread.name.startswith("watch ")]

        assert all(thread.daemon for thread in watchers)


class Lossy:
    """A store whose watch breaks off after what it has to tell first."""

    def __init__(self, store: MemoryStore, *, always: bool = False) -> None:
        self._store = store
        self._always = always
        self.losses = 0
        self.get, self.find = store.get, store.find

    def watch(self, path, seconds=None):
        if not self._always:
            yield self._store.get(path)
        self.losses += 1
        raise Retryable("the connection was lost")


class TestPackage:
    def test_it_offers_the_four_and_nothing_that_it_has_not(self):
        assert (package.submit, package.get, package.watch, package.cancel) == (
            api.submit,
            api.get,
            api.watch,
            api.cancel,
        )
        with pytest.raises(AttributeError, match="has no attribute 'retry'"):
            package.retry  # noqa: B018

    def test_its_name_alone_loads_nothing(self):
        program = (
            "import sys, runtender; print([name for name in sys.modules if name.startswith('runtender.')])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

        assert done.stdout == "[]\n"

    def test_the_api_needs_nothing_of_the_command_lines(self):
        names = ("click", "rich", "yaml", "runtender.cli")
        program = (
            "import sys; from runtender import submit, watch; "
            f"print([name for name in {names!r} if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

        assert done.stdout == "[]\n"


class TestConnect:
    @pytest.fixture(autouse=True)
    def _anywhere(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path))
        # What connecting adopts, it leaves in the environment of its process.
        for name in ("SF_PROJECT_ID", "SF_CODE_BUCKET", "SF_PLANE_ID"):
            monkeypatch.setenv(name, "")
        monkeypatch.setenv("SF_BACKEND", "embedded")
        monkeypatch.setenv("SF_STORE_PATH", str(tmp_path / "store.db"))
        monkeypatch.setenv("SF_TOPICS_ENDPOINT", "http://127.0.0.1:1")

    def test_settings_name_the_plane(self):
        world = api.connect(project_id="p", code_bucket="c", plane_id="blue")

        assert (world.settings.project, world.settings.code_bucket, world.settings.plane_id) == (
            "p",
            "c",
            "blue",
        )
        assert os.environ["SF_PLANE_ID"] == "blue"
        with pytest.raises(api.UnknownRun):
            api.get("unknown-0123456789ab", plane=world)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"bucket": "c"}, "bucket: is not a known setting"),
            ({"project_id": "p"}, "SF_CODE_BUCKET: is not set"),
        ],
    )
    def test_what_is_missing_or_wrong_is_named(self, settings, words):
        with pytest.raises(Rejected) as caught:
            api.connect(**settings)
        assert words in str(caught.value)

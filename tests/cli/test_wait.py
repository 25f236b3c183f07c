"""`wait`: the exit code of the outcome, bounded patience, and a Ctrl-C that touches nothing."""

from __future__ import annotations

import signal
import sys
from datetime import timedelta
from functools import partial
from io import StringIO

import pytest

from runtender.cli.progress import progress
from runtender.client.records import record_of
from runtender.errors import Retryable
from runtender.local.store import MemoryStore
from runtender.model import Cells, Cleanup, CleanupState, Indexes, Phase, SubmitKind
from runtender.ports import Update
from runtender.wire.documents import job_path, job_to_document, run_path, run_to_document

_CODES = {"SUCCEEDED": 0, "PARTIAL": 3, "FAILED": 3, "TIMED_OUT": 4, "NO_CAPACITY": 5, "CANCELLED": 6}


def seen(make, job):
    """The record of a run with one job."""
    return record_of(run_to_document(make.run(job)), [job_to_document(job)])


class StridingClock:
    """A clock that goes on by `stride` at each look; `events` happen at the looks of their numbers."""

    def __init__(self, start, stride, events=None):
        self._now, self._stride, self._events = start, stride, events or {}
        self._looks = 0

    def now(self):
        self._looks += 1
        self._events.get(self._looks, lambda: None)()
        self._now += self._stride
        return self._now


@pytest.mark.parametrize(("outcome", "code"), _CODES.items(), ids=_CODES)
def test_the_exit_code_tells_the_outcome(runtender, make, keep, parsed, outcome, code):
    job = make.ended_job(outcome)
    keep(make.run(job), job)
    result = runtender("wait", make.RUN_ID, "--format", "json")

    assert result.exit_code == code
    (ended,) = parsed(result, "json", "ended_runs")["runs"]
    assert ended["run"]["outcome"] == outcome


def test_wait_ends_when_the_run_does(runtender, make, keep, store, parsed):
    job = make.job()
    keep(make.run(job), job)
    ended = make.ended_job("SUCCEEDED")

    def finish():
        header, body = store.get(run_path(job.run_id)), store.get(job_path(job.job_key))
        store.commit(
            [
                Update(path=body.path, fields=job_to_document(ended), stamp=body.stamp, remove=("wake_at",)),
                Update(path=header.path, fields=run_to_document(make.run(ended)), stamp=header.stamp),
            ]
        )

    clock = StridingClock(make.ACCEPTED, timedelta(seconds=1), {3: finish})
    result = runtender("wait", make.RUN_ID, "--format", "json", clock=clock)

    assert result.exit_code == 0
    assert parsed(result, "json", "ended_runs")["runs"][0]["jobs"][0]["outcome"] == "SUCCEEDED"
    assert "statistical: SUCCEEDED (Completed)" in result.stderr.splitlines()[-1]


def test_wait_follows_the_attempt_that_replaces_another(runtender, make, keep, store):
    first, second = make.ended_job("FAILED"), make.ended_job("SUCCEEDED", attempt=2)
    running = make.job(attempt=2)
    keep(make.run(running), running, first)
    header, body = store.get(run_path(make.RUN_ID)), store.get(job_path(second.job_key))

    def finish():
        store.commit(
            [
                Update(path=body.path, fields=job_to_document(second), stamp=body.stamp, remove=("wake_at",)),
                Update(path=header.path, fields=run_to_document(make.run(second)), stamp=header.stamp),
            ]
        )

    clock = StridingClock(make.ACCEPTED, timedelta(seconds=1), {2: finish})

    assert runtender("wait", make.RUN_ID, clock=clock).exit_code == 0


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (("SUCCEEDED", "SUCCEEDED"), 0),
        (("SUCCEEDED", "CANCELLED"), 6),
        (("CANCELLED", "NO_CAPACITY"), 5),
        (("NO_CAPACITY", "TIMED_OUT"), 4),
        (("TIMED_OUT", "PARTIAL", "NO_CAPACITY"), 3),
    ],
)
def test_the_worst_of_several_runs_gives_the_exit_code(runtender, make, keep, parsed, outcomes, code):
    names = [f"run-{number}" for number in range(len(outcomes))]
    for name, outcome in zip(names, outcomes, strict=True):
        job = make.ended_job(outcome, run_id=name)
        keep(make.run(job, run_id=name), job)
    result = runtender("wait", *names, names[0], "--format", "json")

    assert result.exit_code == code
    ended = parsed(result, "json", "ended_runs")["runs"]
    assert [(each["run"]["run_id"], each["run"]["outcome"]) for each in ended] == [
        *zip(names, outcomes, strict=True)
    ]
    assert sorted(line.split()[2] for line in result.stderr.splitlines()) == names


def test_several_runs_are_a_line_each(runtender, make, keep):
    for name in ("run-a", "run-b"):
        job = make.ended_job("SUCCEEDED", run_id=name)
        keep(make.run(job, run_id=name), job)
    header, *lines = runtender("wait", "run-a", "run-b").stdout.splitlines()

    assert header.split()[:3] == ["RUN", "FAMILY", "ATTEMPT"]
    assert [line.split()[0] for line in lines] == ["run-a", "run-b"]


def test_what_has_not_ended_of_several_runs_is_named(runtender, make, keep):
    for name, kept in (
        ("run-a", make.ended_job("SUCCEEDED", run_id="run-a")),
        ("run-b", make.job(run_id="run-b")),
    ):
        keep(make.run(kept, run_id=name), kept)
    clock = StridingClock(make.ACCEPTED, timedelta(seconds=20))
    result = runtender("wait", "run-a", "run-b", "--timeout", "1m", clock=clock)

    assert result.exit_code == 1
    assert "'runtender wait run-b' goes on waiting" in result.stderr


def test_what_is_left_to_clean_up_is_said(runtender, make, keep):
    job = make.ended_job("SUCCEEDED", cleanup=Cleanup(state=CleanupState.STUCK, reason="403"))
    keep(make.run(job), job)

    assert "cannot be removed yet" in runtender("wait", make.RUN_ID).stderr


def test_wait_gives_up_after_its_timeout(runtender, make, keep):
    job = make.job()
    keep(make.run(job), job)
    clock = StridingClock(make.ACCEPTED, timedelta(minutes=1))
    result = runtender("wait", make.RUN_ID, "--timeout", "2m", clock=clock)

    assert result.exit_code == 1
    assert "has not ended yet" in result.stderr


def test_wait_gives_up_on_a_plane_that_writes_nothing(runtender, make, keep):
    job = make.job()
    keep(make.run(job), job)
    clock = StridingClock(make.ACCEPTED, timedelta(hours=1))
    result = runtender("wait", make.RUN_ID, clock=clock)

    assert result.exit_code == 1
    assert "the plane has written nothing for" in result.stderr


def test_ctrl_c_leaves_the_run_alone_and_says_so(runtender, make, keep, store, mailbox):
    job = make.job()
    keep(make.run(job), job)
    before = store.get(run_path(make.RUN_ID)), store.get(job_path(job.job_key))
    press = partial(signal.raise_signal, signal.SIGINT)
    clock = StridingClock(make.ACCEPTED, timedelta(seconds=1), {2: press})
    result = runtender("wait", make.RUN_ID, clock=clock)

    assert result.exit_code == 130
    assert result.stdout == ""
    assert f"run {make.RUN_ID} goes on" in result.stderr
    assert mailbox.messages == []
    assert (store.get(run_path(make.RUN_ID)), store.get(job_path(job.job_key))) == before


def test_a_store_that_cannot_be_reached_ends_the_wait_with_its_words(runtender, make, keep, store):
    class Unreachable(MemoryStore):
        get = store.get
        find = store.find

        def watch(self, path, seconds=None):
            raise Retryable("the store cannot be reached")

    job = make.job()
    keep(make.run(job), job)
    result = runtender("wait", make.RUN_ID, store=Unreachable())

    assert result.exit_code == 1
    assert "error: the store cannot be reached" in result.stderr


def test_progress_off_a_terminal_is_a_line_per_change(make, capsys):
    at = make.ACCEPTED + timedelta(minutes=4)
    waiting = make.job(phase=Phase.PROVISIONING, started_at=None, cells=Cells())
    running = make.job()
    with progress() as display:
        display.show([], at)
        for job, seconds in ((waiting, 0), (waiting, 5), (running, 6), (running, 7)):
            display.show([seen(make, job)], at + timedelta(seconds=seconds))
        for count, seconds in ((5, 8), (6, 17), (7, 18)):
            job = make.job(cells=Cells(count=count))
            display.show([seen(make, job)], at + timedelta(seconds=seconds))
        ended = make.ended_job("SUCCEEDED")
        display.show([seen(make, ended)], at)

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "2026-01-05 08:04:00Z statistical: PROVISIONING, placement 2, 0 cell files, 4m00s of 45m00s",
        "2026-01-05 08:04:06Z statistical: RUNNING, placement 2, 4 cell files, 1m06s of 1h00m",
        "2026-01-05 08:04:17Z statistical: RUNNING, placement 2, 6 cell files, 1m17s of 1h00m",
        "2026-01-05 08:04:00Z statistical: SUCCEEDED (Completed), placement 2, 210 cells, 9m00s",
    ]


@pytest.mark.parametrize(
    ("indexes", "words"),
    [
        (Indexes(completions=4), "0 of 4 workers done"),
        (Indexes(completions=4, active=2, completed="0,3"), "2 of 4 workers done"),
        (Indexes(completions=9, completed="1-7", failed="0"), "7 of 9 workers done, 1 failed"),
        (Indexes(completions=9000, completed="0,2-800,..."), "over 800 of 9000 workers done"),
        (Indexes(completions=4, completed="all"), "? of 4 workers done"),
    ],
    ids=["none", "some", "one failed", "a list that was cut", "no list"],
)
def test_progress_counts_the_workers_of_an_indexed_job(make, capsys, indexes, words):
    with progress() as display:
        display.show([seen(make, make.job(indexes=indexes))], make.ACCEPTED + timedelta(minutes=4))

    assert f" 4 cell files, {words}, 1m00s of " in capsys.readouterr().err


def test_a_task_has_no_cells_to_land(make, capsys):
    job = make.job(family="task", plan=make.plan(kind=SubmitKind.TASK))
    with progress() as display:
        display.show([seen(make, job)], make.ACCEPTED + timedelta(minutes=4))

    line = "2026-01-05 08:04:00Z task: RUNNING, placement 2, 1m00s of 1h00m\n"
    assert capsys.readouterr().err == line


class Terminal(StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_is_drawn_over_and_taken_away(make, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    job = make.job()
    with progress() as display:
        display.show([seen(make, job)], make.ACCEPTED + timedelta(minutes=4))
        drawn = screen.getvalue()

    assert "RUNNING" in drawn
    assert "1m00s of 1h00m" in drawn
    # The cursor goes up over each drawn line and clears it.
    assert "\x1b[2K" in screen.getvalue()[len(drawn) :]

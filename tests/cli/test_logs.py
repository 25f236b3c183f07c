"""`logs`: the newest object of each worker of the newest try, from storage alone; followed, what each adds."""

from __future__ import annotations

import signal
from functools import partial

import pytest

from runtender.cli.log_windows import appended, last_lines
from runtender.gcp.clock import SystemClock
from runtender.ports import Update
from runtender.wire.documents import job_path, job_to_document


@pytest.fixture
def job(make, keep):
    job = make.ended_job("FAILED")
    keep(make.run(job), job)
    return job


@pytest.fixture
def upload(objects, job):
    def put(placement: int, name: str, text: bytes) -> str:
        path = f"runs/logs/{job.job_key}/{job.resources[placement].nonce}/{name}"
        objects.put("demo-code", path, text)
        return f"gs://demo-code/{path}"

    return put


def test_the_newest_log_is_data_and_its_name_is_not(runtender, job, upload):
    upload(1, "0.1.log", b"reading\n")
    uri = upload(1, "0.2.log", b"reading\nexit 3\n")
    result = runtender("logs", job.run_id)

    assert result.exit_code == 0
    assert result.stdout == "reading\nexit 3\n"
    assert result.stderr == f"==> {uri} <==\n"


def test_numbers_are_compared_as_numbers(runtender, job, upload):
    for number in (10, 9, 2):
        upload(1, f"0.{number}.log", f"upload {number}\n".encode())

    assert runtender("logs", job.run_id).stdout == "upload 10\n"


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_every_worker_has_a_log(runtender, job, upload, parsed, form):
    upload(1, "1.1.log", b"one\n")
    upload(1, "0.1.log", b"zero\n")
    document = parsed(runtender("logs", job.run_id, "--format", form), form, "logs")

    assert [(log["index"], log["text"]) for log in document["logs"]] == [(0, "zero\n"), (1, "one\n")]


def test_what_the_plane_kept_of_pods_is_a_log_too(runtender, job, upload):
    uri = upload(1, "pods.log", b"--- pod w-3 ---\nexit 3\n")
    result = runtender("logs", job.run_id)

    assert (result.exit_code, result.stdout) == (0, "--- pod w-3 ---\nexit 3\n")
    assert result.stderr == f"==> {uri} <==\n"


def test_an_older_try_serves_while_the_newest_has_no_log(runtender, job, upload):
    upload(0, "0.1.log", b"first placement\n")

    assert runtender("logs", job.run_id).stdout == "first placement\n"


def test_a_log_cannot_steer_the_terminal(runtender, job, upload):
    upload(1, "0.1.log", b"\x1b[2J\x1b]0;title\x07a\tb\r 10%\r 20%\r\n\x00caf\xc3\xa9 \xc3\n")

    assert runtender("logs", job.run_id).stdout == "a\tb\n 10%\n 20%\ncafé \ufffd\n"


def test_no_log_is_an_error_with_an_empty_document(runtender, job, parsed):
    result = runtender("logs", job.run_id, "--format", "json")

    assert result.exit_code == 1
    assert parsed(result, "json", "logs")["logs"] == []
    assert "has no logs: it has ended" in result.stderr


def test_a_family_that_the_run_lacks_is_a_usage_error(runtender, job):
    result = runtender("logs", job.run_id, "--family", "ml")

    assert result.exit_code == 2
    assert "it has statistical" in result.stderr


def test_only_the_family_asked_for_is_printed(runtender, job, upload):
    upload(1, "0.1.log", b"theta\n")

    assert runtender("logs", job.run_id, "--family", "statistical").stdout == "theta\n"


def test_the_tail_is_the_last_lines_of_each_worker(runtender, job, upload):
    upload(1, "0.1.log", b"a\nb\nc\n")
    upload(1, "1.1.log", b"d\ne")

    assert runtender("logs", job.run_id, "--tail", "2").stdout == "b\nc\nd\ne\n"


class EventfulClock(SystemClock):
    """A clock whose sleeps are over at once, and during which one thing after another happens."""

    def __init__(self, *events):
        self._events = list(events)

    def sleep(self, seconds):
        self._events.pop(0)()


class TestFollow:
    @pytest.fixture
    def running(self, make, keep):
        job = make.job()
        keep(make.run(job), job)
        return job

    @pytest.fixture
    def end(self, store, make):
        def end():
            body = store.get(job_path(make.job().job_key))
            fields = job_to_document(make.ended_job("SUCCEEDED"))
            store.commit([Update(path=body.path, fields=fields, stamp=body.stamp, remove=("wake_at",))])

        return end

    @pytest.fixture
    def upload(self, objects, running):
        def put(name, text, placement=1):
            path = f"runs/logs/{running.job_key}/{running.resources[placement].nonce}/{name}"
            objects.put("demo-code", path, text)

        return put

    def test_only_what_an_upload_adds_is_printed_until_the_run_has_ended(
        self, runtender, running, upload, end
    ):
        upload("0.1.log", b"a\nb\n")

        def last_words():
            upload("0.3.log", b"z\na\nb\nc\nd\n")
            end()

        clock = EventfulClock(lambda: upload("0.2.log", b"b\nc\n"), lambda: None, last_words)
        result = runtender("logs", running.run_id, "-f", clock=clock)

        assert (result.exit_code, result.stdout) == (0, "a\nb\nc\nd\n")
        assert len(result.stderr.splitlines()) == 1, "one worker is named once"

    def test_workers_are_named_as_they_take_turns(self, runtender, running, upload, end):
        upload("0.1.log", b"a\n")
        upload("1.1.log", b"b\n")
        clock = EventfulClock(lambda: upload("0.2.log", b"a\nc\n"), end)
        result = runtender("logs", running.run_id, "-f", clock=clock)

        assert result.stdout == "a\nb\nc\n"
        assert [line[-12:-4] for line in result.stderr.splitlines()] == ["/0.1.log", "/1.1.log", "/0.2.log"]

    def test_a_tail_is_where_it_begins(self, runtender, running, upload, end):
        upload("0.1.log", b"a\nb\nc\n")
        clock = EventfulClock(lambda: upload("0.2.log", b"c\nd\ne\n"), end)

        assert runtender("logs", running.run_id, "-f", "--tail", "1", clock=clock).stdout == "c\nd\ne\n"

    def test_it_waits_for_the_first_log_and_for_a_new_machines(self, runtender, running, upload, end):
        clock = EventfulClock(
            lambda: upload("0.1.log", b"first machine\n", placement=0),
            lambda: upload("0.1.log", b"second machine\n"),
            end,
        )

        assert (
            runtender("logs", running.run_id, "-f", clock=clock).stdout == "first machine\nsecond machine\n"
        )

    def test_ctrl_c_leaves_the_run_alone_and_says_so(self, runtender, running):
        clock = EventfulClock(partial(signal.raise_signal, signal.SIGINT))
        result = runtender("logs", running.run_id, "-f", clock=clock)

        assert result.exit_code == 130
        assert f"run {running.run_id} goes on" in result.stderr

    def test_it_prints_text_only(self, runtender, running):
        assert runtender("logs", running.run_id, "-f", "--format", "json").exit_code == 2


_WINDOWS = {
    "nothing before": (b"", b"ab", b"ab"),
    "the same": (b"ab", b"ab", b""),
    "longer": (b"ab", b"abc", b"c"),
    "moved on": (b"abcd", b"cdef", b"ef"),
    "a larger window at the end": (b"cd", b"abcdef", b"ef"),
    "nothing in common": (b"ab", b"xy", b"xy"),
    "all new but the last byte": (b"abcX", b"Xyz", b"yz"),
    "an end that begins again within itself": (b"xaab", b"aabaac", b"aac"),
    "repeated lines": (b"..\n..\n", b"..\n..\n..\n", b"..\n"),
    "shorter": (b"abcd", b"d", b""),
}


@pytest.mark.parametrize(("before", "after", "fresh"), _WINDOWS.values(), ids=_WINDOWS)
def test_what_a_later_window_adds(before, after, fresh):
    assert appended(before, after) == fresh


def test_windows_of_a_text_put_together_give_the_text():
    text = b"".join(b"epoch %d loss %d\n" % (n, n * n) for n in range(3000))
    cuts = [text[max(0, end - 1000) : end] for end in range(0, len(text), 777)]
    put_together = b""
    for before, after in zip([b"", *cuts], [*cuts, text], strict=True):
        put_together += appended(before, after)

    assert put_together == text


@pytest.mark.parametrize(("count", "lines"), [(0, ""), (1, "c"), (2, "b\nc"), (9, "a\nb\nc")])
def test_last_lines(count, lines):
    assert last_lines("a\nb\nc", count) == lines

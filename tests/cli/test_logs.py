"""`logs`: the newest object of each worker of the newest try, from storage alone."""

from __future__ import annotations

import pytest


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


def test_an_older_try_serves_while_the_newest_has_no_log(runtender, job, upload):
    upload(0, "0.1.log", b"first placement\n")

    assert runtender("logs", job.run_id).stdout == "first placement\n"


def test_a_log_cannot_steer_the_terminal(runtender, job, upload):
    upload(1, "0.1.log", b"\x1b[2J\x1b]0;title\x07a\tb\r 10%\r 20%\r\n\x00caf\xc3\xa9 \xc3\n")

    assert runtender("logs", job.run_id).stdout == "a\tb\n 10%\n 20%\ncafé \ufffd\n"


def test_no_log_yet_is_an_error_with_an_empty_document(runtender, job, parsed):
    result = runtender("logs", job.run_id, "--format", "json")

    assert result.exit_code == 1
    assert parsed(result, "json", "logs")["logs"] == []
    assert "has no logs yet" in result.stderr


def test_a_family_that_the_run_lacks_is_a_usage_error(runtender, job):
    result = runtender("logs", job.run_id, "--family", "ml")

    assert result.exit_code == 2
    assert "it has statistical" in result.stderr


def test_only_the_family_asked_for_is_printed(runtender, job, upload):
    upload(1, "0.1.log", b"theta\n")

    assert runtender("logs", job.run_id, "--family", "statistical").stdout == "theta\n"

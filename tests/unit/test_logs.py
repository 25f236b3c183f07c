"""Log lines: one JSON object each, with what is known of the event, and no secret."""

from __future__ import annotations

import contextvars
import json
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from runtender.engine.spread import side_by_side
from runtender.logs import JsonFormatter, about

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def line():
    """Make a record of a message and fields, and return the line that it becomes."""

    def made(message="job stepped", *, project="", exc_info=None, **fields):
        record = logging.getLogger("runtender.test").makeRecord(
            "runtender.test", logging.INFO, __file__, 1, message, (), exc_info, extra=fields
        )
        text = JsonFormatter(project).format(record)
        assert "\n" not in text
        return json.loads(text)

    return made


def test_a_line_has_the_names_that_cloud_logging_knows_and_the_records_own_fields(line):
    told = line(phase="RUNNING", reason=None, errors=("a", "b"), answer={"status": 200})

    assert {key: told[key] for key in ("severity", "message", "logger")} == {
        "severity": "INFO",
        "message": "job stepped",
        "logger": "runtender.test",
    }
    assert told["time"].endswith("+00:00")
    assert (told["phase"], told["reason"], told["errors"], told["answer"]) == (
        "RUNNING",
        None,
        ["a", "b"],
        {"status": 200},
    )


def test_what_is_said_about_the_event_is_in_every_line_within(line):
    with about(event_id="m-1", trace_id=TRACE), about(job_key="j", run_id=""):
        within = line(project="p")
    after = line(project="p")

    assert (within["event_id"], within["trace_id"], within["job_key"]) == ("m-1", TRACE, "j")
    assert within["logging.googleapis.com/trace"] == f"projects/p/traces/{TRACE}"
    assert "run_id" not in within
    assert not {"event_id", "trace_id", "job_key"} & set(after)


def test_an_event_without_a_trace_is_shown_beside_no_request(line):
    with about(event_id="m-1", trace_id="m-1"):
        assert "logging.googleapis.com/trace" not in line(project="p")


def test_steps_side_by_side_know_their_event(line):
    def step(key):
        return line(job_key=key)["event_id"] == "m-1"

    with about(event_id="m-1"):
        assert list(side_by_side(step, ["a", "b", "c"])) == [True, True, True]
    with ThreadPoolExecutor(1) as pool:
        assert "event_id" not in pool.submit(contextvars.Context().run, line).result()


_TOKENS = {
    "bearer": ("Authorization: Bearer {}", "abc.DEF-123~x/y+z=="),
    "google": ("token {}", "ya29.a0AfH6SMBx-_y"),
    "jwt": ("got {}", "eyJhbGciOi.eyJzdWIiOi.SflKxwRJ-SM_x"),
    "signed url": ("https://storage.googleapis.com/b/o?X-Goog-Signature={}", "5a17c0ffee"),
}


@pytest.mark.parametrize(("words", "token"), _TOKENS.values(), ids=_TOKENS)
def test_a_token_is_taken_out_of_any_text(line, words, token):
    text = words.format(token)
    error = ValueError(text)
    told = line(text, error=text, nested={"list": [text]}, exc_info=(ValueError, error, None))

    assert token not in json.dumps(told)
    assert "[redacted]" in told["message"]
    assert "ValueError" in told["exception"]


@pytest.mark.parametrize("name", ["Authorization", "db_password", "CLIENT_SECRET", "set-cookie", "API_KEY"])
def test_a_value_whose_name_says_that_it_is_secret_is_not_written(line, name):
    told = line(**{name: "hunter2"}, headers={name: "hunter2"})

    assert (told[name], told["headers"][name]) == ("[redacted]", "[redacted]")


def test_what_is_endless_is_cut(line):
    told = line("x" * 100_000, text="y" * 100_000, rows=list(range(1000)))

    assert (len(told["message"]), len(told["text"]), len(told["rows"])) == (4000, 4000, 50)

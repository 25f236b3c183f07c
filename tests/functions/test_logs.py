"""What the entry points log of a whole run: one line per decision, each with run, job and event, and no secret in any."""

from __future__ import annotations

import json
import time

import pytest

TRACE = "0af7651916cd43dd8448eb211c80319c"
# In the message, in a task's environment, in a header, in the process's environment.
SECRETS = ("hunter2-in-task", "hunter2-in-header", "hunter2-in-cookie", "hunter2-in-process", "ya29.hunter2")
PATIENCE_S = 60.0


@pytest.fixture
def told(deliver, events, capsys, monkeypatch):
    """Deliver an event as Cloud Run would hand it over, and return the lines that were logged meanwhile."""
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2-in-process")
    monkeypatch.setenv("GOOGLE_ACCESS_TOKEN", "ya29.hunter2")
    headers = {
        "Authorization": "Bearer hunter2-in-header",
        "Cookie": "session=hunter2-in-cookie",
        "traceparent": f"00-{TRACE}-b7ad6b7169203331-01",
    }

    def send(target, message):
        assert deliver(target, {**events.classic(message), "headers": headers}) == 204
        out, err = capsys.readouterr()
        assert [secret for secret in SECRETS if secret in out + err] == []
        return [json.loads(line) for line in out.splitlines()]

    return send


def a_task(env):
    return {
        "kind": "task",
        "config": {"name": "hi", "image": "example/hi:1", "command": ["true"], "env": env},
    }


def test_a_whole_happy_run_is_told_line_by_line_and_no_secret_is(cloud, events, told):
    lines = told("on_submit", events.message(a_task({"GREETING": "hunter2-in-task"}), message_id="m-1"))
    for stage, body in (
        ("started", {"status": "RUNNING"}),
        ("terminal", {"status": "SUCCEEDED", "exit_code": 0}),
    ):
        notice = events.notification(cloud.mark(stage, **body))
        lines += told("on_marker", {**notice, "messageId": f"m-{stage}"})
    deadline = time.monotonic() + PATIENCE_S
    while cloud.job()["phase"] != "DONE":
        assert time.monotonic() < deadline
        time.sleep(0.2)
        lines += told("on_tick", events.message({}, message_id="m-tick"))

    stepped = [line for line in lines if line["message"] == "job stepped"]
    job = cloud.job()
    assert {(line["run_id"], line["job_key"], line["trace_id"]) for line in stepped} == {
        (job["run_id"], job["job_key"], TRACE)
    }
    assert {line["logging.googleapis.com/trace"] for line in lines} == {f"projects/local/traces/{TRACE}"}
    assert {"m-1", "m-started", "m-terminal", "m-tick"} >= {line["event_id"] for line in lines} >= {"m-1"}
    # One line for each step that the history tells, in its order and with its cause.
    causes = [row["cause"] for row in job["history"]][1:]
    assert [line["cause"] for line in stepped if line["cause"]] == causes
    ends = [(line["phase"], line["outcome"], line["reason"]) for line in stepped if line["outcome"]]
    assert ends[0] == ("STOPPING", "SUCCEEDED", "Completed")
    assert ends[-1] == ("DONE", "SUCCEEDED", "Completed")


def test_a_rejected_message_is_not_quoted(cloud, events, told):
    message = events.message(a_task(["API_KEY=hunter2-in-task"]), message_id="m-1")
    (rejected,) = [line for line in told("on_submit", message) if line["message"] == "submit rejected"]

    assert rejected["fields"] == ["env"]
    assert "hunter2-in-task" in cloud.request("m-1")["errors"][0], "its sender is told all the same"

"""`list`, `describe` and `cancel`."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.model import Cleanup, CleanupState


@pytest.fixture
def running(make, keep):
    job = make.job()
    keep(make.run(job), job)
    return job


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_list_shows_the_newest_run_first(runtender, make, keep, parsed, form):
    for minute in (1, 3, 2):
        keep(make.run(run_id=f"run-{minute}", created_at=make.ACCEPTED + timedelta(minutes=minute)))
    result = runtender("list", "--limit", "2", "--format", form)

    assert result.exit_code == 0
    assert [run["run_id"] for run in parsed(result, form, "runs")["runs"]] == ["run-3", "run-2"]


def test_list_is_a_table_for_people(runtender, make, keep):
    job = make.ended_job("SUCCEEDED")
    keep(make.run(job), job)
    header, row = runtender("list").stdout.splitlines()

    assert header.split() == ["RUN", "STATUS", "OUTCOME", "FAMILIES", "CREATED", "TOOK"]
    assert row.split() == [
        make.RUN_ID,
        "COMPLETED",
        "SUCCEEDED",
        "statistical",
        "2026-01-05",
        "08:00:00Z",
        "9m00s",
    ]


def test_an_empty_list_says_how_to_begin(runtender, parsed):
    result = runtender("list", "--format", "json")

    assert result.exit_code == 0
    assert parsed(result, "json", "runs") == {"runs": []}
    assert "runtender submit" in result.stderr


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_describe_prints_the_documents_with_their_times_in_utc(runtender, running, parsed, form):
    document = parsed(runtender("describe", running.run_id, "--format", form), form, "run")

    assert document["run"]["created_at"] == "2026-01-05T08:00:00Z"
    (job,) = document["jobs"]
    assert job["job_key"] == running.job_key
    assert job["deadlines"]["capacity"] == "2026-01-05T08:45:00Z"
    assert job["walk"]["ledger"][0]["candidate"] == "us-central1/us-central1-a"


def test_describe_shows_placements_resources_deadlines_and_history(runtender, running):
    result = runtender("describe", running.run_id)

    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    expected = [
        f"Run {running.run_id}",
        "Labels team=planning",
        "statistical 1 RUNNING NONE 2 4 cell files - - -",
        running.job_key,
        "Phase RUNNING",
        "Runtime gce n2-standard-8",
        "Capacity until 2026-01-05 08:45:00Z",
        "Runs until 2026-01-05 09:03:00Z",
        "Placements that failed",
        " ".join(
            (
                "2026-01-05 08:00:09Z us-central1/us-central1-a TRANSIENT_CAPACITY ZONE_RESOURCE_POOL_EXHAUSTED 4s",
                "The zone does not have enough resources. Try another.",
            )
        ),
        "Resources",
        "History",
        "2026-01-05 08:03:00Z RUNNING - started marker -",
    ]
    assert [line for line in expected if line not in lines] == []


def test_describe_shows_phases_and_why_cleanup_is_stuck(runtender, make, keep):
    cleanup = Cleanup(state=CleanupState.STUCK, reason="403 compute.instances.delete", tries=5)
    job = make.ended_job("SUCCEEDED", cleanup=cleanup)
    keep(make.run(job), job)
    lines = [" ".join(line.split()) for line in runtender("describe", make.RUN_ID).stdout.splitlines()]

    assert "statistical 1 SUCCEEDED (Completed) STUCK 2 210 cells 3m00s 6m00s 9m00s" in lines
    assert "Cleanup STUCK, 5 tries, 403 compute.instances.delete" in lines


def test_describe_shows_every_attempt_in_order(runtender, make, keep, parsed):
    first, second = make.ended_job("FAILED"), make.job(attempt=2)
    keep(make.run(second), second, first)
    document = parsed(runtender("describe", make.RUN_ID, "--format", "json"), "json", "run")

    assert [job["attempt"] for job in document["jobs"]] == [1, 2]


@pytest.mark.parametrize("verb", ["describe", "wait", "logs", "cancel"])
@pytest.mark.parametrize("run_id", ["unknown-0123456789ab", "a/b", ""], ids=["unknown", "a path", "empty"])
def test_an_unknown_run_is_an_error_that_says_where_to_look(runtender, mailbox, verb, run_id):
    result = runtender(verb, run_id)

    assert result.exit_code == 1
    assert "'runtender list' shows the runs that are" in result.stderr
    assert mailbox.messages == []


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_cancel_publishes_the_wish_and_prints_the_answer(runtender, mailbox, running, parsed, form):
    result = runtender("cancel", running.run_id, "--format", form)

    assert result.exit_code == 0
    (answer,) = parsed(result, form, "answers")["answers"]
    assert (answer["state"], answer["run_id"]) == ("accepted", running.run_id)
    (message,) = mailbox.messages
    assert message == {"action": "cancel", "run_id": running.run_id, "request_id": message["request_id"]}


def test_a_refused_cancel_prints_why(runtender, mailbox, running):
    mailbox.answer_state, mailbox.errors = "rejected", ["run has ended"]
    result = runtender("cancel", running.run_id)

    assert result.exit_code == 2
    assert "error: run has ended" in result.stderr


def test_a_cancel_that_nobody_answers_is_an_error(runtender, mailbox, running):
    mailbox.answer_state = None
    result = runtender("cancel", running.run_id)

    assert result.exit_code == 1
    assert "the plane has not answered" in result.stderr

"""`list`, `describe`, `history`, `cancel` and `retry`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from runtender.gcp.clock import SystemClock
from runtender.model import (
    Block,
    Cleanup,
    CleanupState,
    Indexes,
    Job,
    KubernetesPlan,
    Phase,
    Placement,
    Reason,
    Scope,
)
from runtender.ports import Create
from runtender.wire.codec import encode
from runtender.wire.documents import job_path


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


def test_a_list_shows_who_waits_for_the_limits_and_where_in_the_queue(runtender, make, keep):
    for minute, waits in enumerate((None, 9, 4)):
        run_id = f"run-{minute}-0123456789ab"
        place = (
            {"queue_at": make.ACCEPTED + timedelta(minutes=waits), "admission": "waiting"} if waits else {}
        )
        job = make.job(run_id=run_id, **place)
        keep(make.run(job, run_id=run_id, created_at=make.ACCEPTED + timedelta(minutes=minute)), job)
    header, *rows = runtender("list").stdout.splitlines()

    assert header.split()[-1] == "QUEUE"
    assert [row.split()[-1] for row in rows] == ["1", "2", "-"]


def test_an_empty_list_says_how_to_begin(runtender, parsed):
    result = runtender("list", "--format", "json")

    assert result.exit_code == 0
    assert parsed(result, "json", "runs") == {"runs": []}
    assert "runtender submit" in result.stderr


@pytest.fixture
def listed(runtender, make, keep, parsed):
    """Keep four runs and return what a list of them holds, by the letters of their names."""
    stuck = Cleanup(state=CleanupState.STUCK)
    jobs: dict[str, tuple[Job, dict[str, Any]]] = {
        "a": (make.ended_job("SUCCEEDED"), {"labels": {"team": "demand"}}),
        "b": (make.job(), {"labels": {"team": "planning"}, "requested_by": "ada"}),
        "c": (make.ended_job("FAILED", reason=Reason.EXIT_CODE), {"labels": {}}),
        "d": (make.ended_job("CANCELLED", cleanup=stuck), {"labels": {"team": "Demand"}}),
    }
    for minute, (letter, (job, facts)) in enumerate(jobs.items()):
        created = make.ACCEPTED + timedelta(minutes=minute)
        run = make.run(job, run_id=f"{letter}-0123456789ab", created_at=created, **facts)
        entry = replace(run.families["statistical"], reason=job.reason, cleanup=job.cleanup.state)
        finished = created + timedelta(minutes=10 - minute * minute) if run.outcome else None
        keep(replace(run, families={"statistical": entry}, finished_at=finished))

    def read(*arguments):
        result = runtender("list", *arguments, "--format", "json")
        assert result.exit_code == 0, result.stderr
        return "".join(run["run_id"][0] for run in parsed(result, "json", "runs")["runs"])

    return read


_FILTERS = {
    "none": ([], "dcba"),
    "outcome": (["outcome=failed"], "c"),
    "no outcome": (["outcome=-"], "b"),
    "not": (["outcome!=SUCCEEDED"], "dcb"),
    "pattern": (["run=[ab]-*"], "ba"),
    "reason": (["reason=ExitCode"], "c"),
    "cleanup": (["cleanup=stuck"], "d"),
    "family": (["family=ml"], ""),
    "label": (["label.team=demand"], "da"),
    "no label": (["label.team=-"], "c"),
    "who": (["requested_by=ada"], "b"),
    "both": (["label.team=demand", "status=completed"], "a"),
}


@pytest.mark.parametrize(("filters", "letters"), _FILTERS.values(), ids=_FILTERS)
def test_a_list_shows_what_all_filters_take(listed, filters, letters):
    assert listed(*(word for each in filters for word in ("--filter", each))) == letters


_ORDERS = {
    "created": "abcd",
    "-created": "dcba",
    "run": "abcd",
    "-run": "dcba",
    "outcome": "bdca",
    "took": "dcab",
}


@pytest.mark.parametrize(("key", "letters"), _ORDERS.items(), ids=_ORDERS)
def test_a_list_is_sorted_as_asked(listed, key, letters):
    assert listed("--sort", key) == letters


def test_the_limit_counts_what_is_shown(listed):
    assert listed("--filter", "outcome!=failed", "--sort", "run", "--limit", "2") == "ab"


def test_a_filter_that_takes_nothing_says_so(runtender, listed):
    result = runtender("list", "--filter", "family=ml")

    assert "none of the newest 4 runs is like that" in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--filter", "outcome", "is not FIELD=PATTERN"),
        ("--filter", "color=red", "fields: run, status"),
        ("--filter", "label.=x", "is not FIELD=PATTERN"),
        ("--sort", "size", "use one of created, finished"),
    ],
)
def test_a_field_that_there_is_not_is_wrong_usage(runtender, option, value, words):
    result = runtender("list", option, value)

    assert result.exit_code == 2
    assert words in result.stderr


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


def test_describe_shows_where_the_walk_stands(runtender, make, keep):
    now = SystemClock().now()
    places = [Placement(region="us-central1", zone=f"us-central1-{letter}") for letter in "ab"]
    plan = make.plan(placements=tuple(places))
    blocked = Block(scope=Scope.ZONE, name="us-central1-a", until=now + timedelta(minutes=9))
    over = Block(scope=Scope.REGION, name="us-east1", until=now - timedelta(minutes=1))
    walk = replace(make.job().walk, passes=1, order=(1, 0), resume_at=make.ACCEPTED, blocked=(blocked, over))
    job = make.job(phase=Phase.AWAITING_CAPACITY, plan=plan, walk=walk)
    keep(make.run(job), job)
    lines = [" ".join(line.split()) for line in runtender("describe", make.RUN_ID).stdout.splitlines()]

    assert (
        "Walk pass 2, 1 failed of at most 8, next us-central1/us-central1-b, not before 2026-01-05 08:00:00Z"
        in lines
    )
    assert [line for line in lines if line.startswith("zone us-central1-a")] != []
    assert [line for line in lines if "us-east1" in line] == []


def test_describe_shows_the_cluster_of_a_job_and_how_far_each_of_its_workers_is(runtender, make, keep):
    hour = timedelta(hours=1)
    kubernetes = KubernetesPlan(
        mode="job", cluster_name="batch", cluster_location="us-east1", job_deadline=hour, pod_deadline=hour
    )
    indexes = Indexes(completions=12, active=3, completed="0,2-5,10-11", failed="1,7")
    job = make.job(runtime="gke", plan=make.plan(kubernetes=kubernetes), indexes=indexes)
    keep(make.run(job), job)
    lines = [" ".join(line.split()) for line in runtender("describe", make.RUN_ID).stdout.splitlines()]

    assert "Cluster batch in us-east1, namespace default" in lines
    assert "Workers 7 of 12 workers done, 2 failed; 3 active; done 0,2-5,10-11; failed 1,7" in lines


def test_describe_shows_every_attempt_in_order(runtender, make, keep, parsed):
    first, second = make.ended_job("FAILED"), make.job(attempt=2)
    keep(make.run(second), second, first)
    document = parsed(runtender("describe", make.RUN_ID, "--format", "json"), "json", "run")

    assert [job["attempt"] for job in document["jobs"]] == [1, 2]


@pytest.mark.parametrize("verb", ["describe", "history", "wait", "logs", "cancel", "retry"])
@pytest.mark.parametrize("run_id", ["unknown-0123456789ab", "a/b", ""], ids=["unknown", "a path", "empty"])
def test_an_unknown_run_is_an_error_that_says_where_to_look(runtender, mailbox, verb, run_id):
    result = runtender(verb, run_id)

    assert result.exit_code == 1
    assert "'runtender list' shows the runs that are" in result.stderr
    assert mailbox.messages == []


class TestHistory:
    def test_rows_that_were_moved_out_of_the_document_come_first(self, runtender, make, keep, store, parsed):
        job = make.job()
        keep(make.run(job), job)
        for version, minute in ((7, 1), (120, 2)):
            row = replace(
                job.history[0], at=make.ACCEPTED - timedelta(minutes=9 - minute), cause=f"v{version}"
            )
            block = {"schema": 1, "rows": [encode(row)]}
            path = f"{job_path(job.job_key)}/history/{version:08d}"
            store.commit([Create(path=path, data=block)])
        document = parsed(runtender("history", make.RUN_ID, "--format", "json"), "json", "history")

        assert [row["cause"] for row in document["history"]] == ["v7", "v120", "submit", "started marker"]

    def test_all_attempts_are_told_in_order_of_time(self, runtender, make, keep):
        first = make.ended_job("FAILED")
        second = make.job(
            attempt=2, history=(replace(first.history[0], at=make.ACCEPTED + timedelta(minutes=1)),)
        )
        keep(make.run(second), first, second)
        header, *rows = runtender("history", make.RUN_ID).stdout.splitlines()

        assert header.split() == ["AT", "FAMILY", "ATTEMPT", "PHASE", "OUTCOME", "CAUSE", "DETAIL"]
        assert [row.split()[3] for row in rows] == ["1", "2", "1"]

    def test_one_family_is_told_alone(self, runtender, make, keep):
        jobs = [make.job(), make.job(family="ml")]
        keep(make.run(*jobs), *jobs)
        rows = runtender("history", make.RUN_ID, "--family", "ml").stdout.splitlines()[1:]

        assert {row.split()[2] for row in rows} == {"ml"}
        assert runtender("history", make.RUN_ID, "--family", "no").exit_code == 2


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


def test_a_cancel_of_several_runs_asks_for_each(runtender, mailbox, make, keep):
    for letter in "ab":
        keep(make.run(make.job(), run_id=f"{letter}-0123456789ab"))
    result = runtender("cancel", "a-0123456789ab", "b-0123456789ab", "a-0123456789ab")

    assert result.exit_code == 0
    assert [message["run_id"] for message in mailbox.messages] == ["a-0123456789ab", "b-0123456789ab"]


def test_a_slip_in_one_name_cancels_nothing(runtender, mailbox, running):
    result = runtender("cancel", running.run_id, "slip-0123456789ab")

    assert result.exit_code == 1
    assert mailbox.messages == []


@pytest.mark.parametrize(
    ("options", "asked"), [((), {}), (("--family", "ml,statistical"), {"families": ["ml", "statistical"]})]
)
def test_a_retry_asks_for_what_did_not_succeed(runtender, mailbox, running, parsed, options, asked):
    result = runtender("retry", running.run_id, *options, "--format", "json")

    assert parsed(result, "json", "answer")["state"] == "accepted"
    (message,) = mailbox.messages
    del message["request_id"]
    assert message == {"action": "retry", "run_id": running.run_id, **asked}


def test_the_plane_takes_a_retry_in(runtender, flights, intake, parsed):
    submitted = runtender("submit", str(flights), "--format", "json", topics=intake)
    run_id = parsed(submitted, "json", "answer")["run_id"]
    refused = runtender("retry", run_id, topics=intake)

    assert refused.exit_code == 2
    assert "is still alive; cancel it first, or wait for its end" in refused.stderr

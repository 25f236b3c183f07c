"""Documents carry the schema's keys to the letter, and a job survives being stored."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from runtender.errors import Retryable
from runtender.model import (
    Deadlines,
    HistoryRow,
    Job,
    JobPlan,
    LedgerEntry,
    Phase,
    Placement,
    Resource,
    ResourceKind,
    ResourceState,
    Verdict,
    Walk,
)
from runtender.ports import Create, Snapshot, Update
from runtender.wire.documents import HISTORY_KEPT, job_from_document, job_to_document, job_update

AT = datetime(2026, 1, 1, 12, 30, 5, 123456, tzinfo=UTC)


def a_job(**changes):
    plan = JobPlan(
        runtime="gce",
        name="sf-x",
        machine_type="n2-standard-8",
        image_uri="i",
        status_bucket="b",
        placements=(Placement(region="us-central1", zone="us-central1-a"),),
        capacity_wait=timedelta(minutes=45),
        run_limit=timedelta(hours=24),
        max_run_duration=timedelta(hours=25),
    )
    row = Resource(
        kind=ResourceKind.VM,
        name="sf-x",
        location="us-central1-a",
        placement=0,
        try_number=2,
        nonce="0123456789abcdef",
        request_id="u",
        state=ResourceState.INTENDED,
        since=AT,
    )
    entry = LedgerEntry(candidate="c", verdict=Verdict.RETRY, code="x", message="m", elapsed_s=1.5, at=AT)
    job = Job(
        job_key="sf-r-0123456789ab-ml-a1",
        key="k",
        run_id="r-0123456789ab",
        family="ml",
        attempt=1,
        runtime="gce",
        plan=plan,
        resources=(row,),
        walk=Walk(passes=2, order=(1, 0), ledger=(entry,)),
        deadlines=Deadlines(capacity=AT),
        accepted_at=AT,
        wake_at=AT,
        history=(HistoryRow(at=AT, phase=Phase.PENDING, outcome=None, cause="accepted"),),
    )
    return replace(job, **changes)


def snapshot(job):
    return Snapshot(path=f"jobs/{job.job_key}", data=job_to_document(job), stamp=1)


def test_a_job_survives_being_stored():
    assert job_from_document(job_to_document(a_job())) == a_job()
    at_rest = a_job(wake_at=None)
    assert job_from_document(job_to_document(at_rest)) == at_rest


def test_keys_are_the_schemas():
    document = job_to_document(a_job())
    assert {"schema", "job_key", "key", "run_id", "family", "attempt", "runtime", "plan", "phase"} <= set(
        document
    )
    assert {"cleanup", "cancel_requested", "walk", "deadlines", "wake_at", "history", "token"} <= set(
        document
    )
    assert document["resources"][0]["try"] == 2
    assert {"pass", "next", "attempts", "blocked", "ledger", "api_waits"} <= set(document["walk"])
    assert document["plan"]["run_limit_s"] == 86400
    assert document["schema"] == 1


def test_a_job_at_rest_has_no_wake():
    assert "wake_at" not in job_to_document(a_job(wake_at=None))
    before = snapshot(a_job())
    (write,) = job_update(a_job(wake_at=None), before, AT)
    assert isinstance(write, Update)
    assert write.remove == ("wake_at",)


def test_only_what_changed_is_written():
    job = a_job()
    (write,) = job_update(replace(job, phase=Phase.RUNNING), snapshot(job), AT)
    assert isinstance(write, Update)
    assert write.fields == {"phase": "RUNNING"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"phase": Phase.RUNNING}, id="a word"),
        pytest.param({"wake_at": None, "cancel_requested": True}, id="a moment that goes"),
        pytest.param({"walk": Walk(attempts=3)}, id="a part"),
        pytest.param({}, id="nothing"),
    ],
)
def test_knowing_what_the_document_was_read_as_changes_no_write(change):
    before = snapshot(a_job())
    was = job_from_document(before.data)
    job = replace(was, **change)
    assert job_update(job, before, AT, was=was) == job_update(job, before, AT)


def test_a_document_of_an_older_schema_is_written_anew_as_a_whole():
    before = replace(snapshot(a_job()), data={**job_to_document(a_job()), "schema": 0, "key": "as it was"})
    was = replace(job_from_document(before.data), key="as it is")
    (write,) = job_update(was, before, AT, was=was)
    assert isinstance(write, Update)
    assert write.fields == {"schema": 1, "key": "as it is"}


def test_what_an_older_plane_left_out_takes_its_default():
    document = job_to_document(a_job())
    del document["cleanup"], document["walk"], document["cells"]
    assert job_from_document(document).walk == Walk()


def test_a_newer_schema_is_not_touched():
    with pytest.raises(Retryable, match="newer plane"):
        job_from_document({**job_to_document(a_job()), "schema": 2})


def test_old_history_moves_to_a_block_in_the_same_write():
    rows = tuple(
        HistoryRow(at=AT, phase=Phase.RUNNING, outcome=None, cause=str(n)) for n in range(HISTORY_KEPT + 1)
    )
    job = a_job()
    block, update = job_update(replace(job, history=rows, version=7), snapshot(job), AT)
    assert isinstance(block, Create)
    assert isinstance(update, Update)
    kept = update.fields["history"]
    assert [row["cause"] for row in (*block.data["rows"], *kept)] == [str(n) for n in range(HISTORY_KEPT + 1)]
    assert block.path == "jobs/sf-r-0123456789ab-ml-a1/history/00000007"
    assert block.data["expires_at"] > AT

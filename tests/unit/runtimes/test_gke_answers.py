"""What a Job's status says, whose a Job is, and what a cluster alone says of one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from runtender.observed import LiveState, Present, WorkerSet, WorkersVerdict
from runtender.ports import Sighted
from runtender.runtimes.gke_answers import (
    JobState,
    classify_job,
    judge_cluster,
    read_fleet,
    read_job,
    read_workers,
)

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def job(completions=2, conditions=(), **status):
    return {"spec": {"completions": completions}, "status": {"conditions": list(conditions), **status}}


@pytest.mark.parametrize(
    ("seen", "state", "words"),
    [
        pytest.param(None, JobState.NOT_FOUND, "Kubernetes Job not found", id="acceptance-D16"),
        pytest.param(job(succeeded=2), JobState.SUCCEEDED, "succeeded=2/2", id="acceptance-D17"),
        pytest.param(
            job(conditions=[{"type": "Complete", "status": "True"}]),
            JobState.SUCCEEDED,
            "succeeded=0/2",
            id="acceptance-D18",
        ),
        pytest.param(
            job(conditions=[{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]),
            JobState.FAILED,
            "BackoffLimitExceeded",
            id="acceptance-D19",
        ),
        pytest.param(job(active=1), JobState.RUNNING, "active=1 succeeded=0/2", id="acceptance-D20"),
        pytest.param(
            job(active=1, failed=1), JobState.RUNNING, "active=1 succeeded=0/2", id="acceptance-D21"
        ),
        pytest.param(job(failed=1), JobState.FAILED, "failed=1 active=0", id="a failure and nothing active"),
        pytest.param(
            job(conditions=[{"type": "Failed", "status": "False"}]),
            JobState.RUNNING,
            "active=0 succeeded=0/2",
            id="a condition that does not hold",
        ),
        pytest.param({}, JobState.RUNNING, "active=0 succeeded=0/1", id="a Job that was just made"),
    ],
)
def test_a_jobs_own_status_says_how_it_stands(seen, state, words):
    assert classify_job(seen) == (state, words)


def failed(reason="FailedIndexes", **more):
    return {"type": "Failed", "status": "True", "reason": reason, **more}


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        pytest.param(job(active=2), WorkersVerdict.RUNNING, id="at work"),
        pytest.param(job(failed=1, active=0), WorkersVerdict.RUNNING, id="between two pods of one index"),
        pytest.param(
            job(conditions=[{"type": "FailureTarget", "status": "True"}], failed=1),
            WorkersVerdict.RUNNING,
            id="about to fail, with pods that still end",
        ),
        pytest.param(job(conditions=[failed()], failed=1), WorkersVerdict.FAILED, id="failed"),
        pytest.param(job(succeeded=2), WorkersVerdict.SUCCEEDED, id="every index succeeded"),
        pytest.param(
            job(conditions=[{"type": "Complete", "status": "True"}]), WorkersVerdict.SUCCEEDED, id="complete"
        ),
    ],
)
def test_workers_have_failed_only_when_a_condition_says_so(seen, verdict):
    assert read_workers(seen).verdict is verdict


def test_all_that_a_status_says_of_the_workers_is_read():
    seen = job(
        completions=6,
        conditions=[failed(message="one index too many", lastTransitionTime="2026-05-04T12:30:00Z")],
        active=1,
        ready=1,
        succeeded=3,
        failed=2,
        completedIndexes="0,2-3",
        failedIndexes="1",
        startTime="2026-05-04T12:00:00Z",
    )
    assert read_workers(seen) == WorkerSet(
        verdict=WorkersVerdict.FAILED,
        detail="FailedIndexes: one index too many",
        completions=6,
        active=1,
        ready=1,
        succeeded=3,
        failed=2,
        completed_indexes="0,2-3",
        failed_indexes="1",
        failed_reason="FailedIndexes",
        started_at=NOON,
        completed_at=NOON.replace(minute=30),
    )


LABELS = {"sf-nonce": "n1", "sf-key": "k1", "sf-plane": "main"}


def document(labels=LABELS, **about):
    metadata = {"name": "sf-a", "uid": "u-1", "creationTimestamp": "2026-05-04T12:00:00Z", "labels": labels}
    return {**job(active=2), "metadata": {**metadata, **about}}


def test_a_job_is_seen_with_its_labels_and_its_workers():
    assert read_job(document()) == Present(
        state=LiveState.RUNNING,
        native_state="RUNNING",
        uid="u-1",
        nonce="n1",
        key="k1",
        plane="main",
        created_at=NOON,
        workers=read_workers(document()),
    )


def test_a_finished_job_is_still_there_and_a_deleted_one_on_its_way():
    done = {**document(), "status": {"succeeded": 2, "completionTime": "2026-05-04T13:00:00Z"}}
    finished, ending = read_job(done), read_job(document(deletionTimestamp="2026-05-04T13:00:00Z"))
    assert finished is not None
    assert ending is not None
    assert (finished.state, finished.native_state) == (LiveState.RUNNING, "SUCCEEDED")
    assert finished.stopped_at == NOON.replace(hour=13)
    assert (ending.state, ending.native_state) == (LiveState.ENDING, "Terminating")


@pytest.mark.parametrize("labels", [{}, None, {"app": "another"}], ids=["no labels", "null", "others"])
def test_a_strangers_job_has_none_of_our_labels(labels):
    seen = read_job(document(labels=labels))
    assert seen is not None
    assert (seen.nonce, seen.key, seen.plane) == ("", "", "")


@pytest.mark.parametrize(
    "body", [{}, {"metadata": None}, {"kind": "Status"}], ids=["empty", "null", "a status"]
)
def test_what_is_no_job_is_no_observation(body):
    assert read_job(body) is None


def test_a_page_of_jobs_is_read_with_the_way_to_the_next():
    page = read_fleet({"metadata": {"continue": "c1"}, "items": [document(), {"metadata": {}}]})
    sight = read_job(document())
    assert sight is not None
    assert page.workers == (Sighted(name="sf-a", location="", sight=sight),)
    assert (page.next_page, page.partial) == ("c1", False)
    assert read_fleet({"metadata": {}, "items": []}).next_page is None


RUNNING = {"status": "RUNNING", "has_endpoint": True}


@pytest.mark.parametrize(
    ("cluster", "seen", "state"),
    [
        pytest.param(RUNNING, None, JobState.NOT_FOUND, id="acceptance-D23"),
        pytest.param(
            {"status": "PROVISIONING", "has_endpoint": False}, None, JobState.RUNNING, id="acceptance-D24 new"
        ),
        pytest.param(
            {"status": "ERROR", "has_endpoint": False}, None, JobState.FAILED, id="acceptance-D24 broken"
        ),
        pytest.param(
            {"status": "DEGRADED", "has_endpoint": True},
            job(active=1),
            JobState.RUNNING,
            id="acceptance-D24 degraded, and at work",
        ),
        pytest.param(
            {"status": "RECONCILING", "has_endpoint": False},
            None,
            JobState.RUNNING,
            id="out of reach for now",
        ),
    ],
)
def test_a_cluster_speaks_for_a_job_only_while_it_cannot_be_asked(a_cluster, cluster, seen, state):
    assert (judge_cluster(a_cluster(**cluster)) or classify_job(seen)[0]) is state


def test_a_job_on_a_cluster_that_is_not_there_is_not_found():
    assert judge_cluster(None) is JobState.NOT_FOUND

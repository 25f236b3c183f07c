"""A Job's own status decides how its workers ended; their summaries say what they achieved."""

from __future__ import annotations

import pytest

from runtender.decide import LookKind
from runtender.model import Outcome, Phase, Reason, ResourceState, SubmitKind, Summary
from runtender.observed import MarkerPair, PodsSeen, WorkersVerdict

DONE, FAILED = WorkersVerdict.SUCCEEDED, WorkersVerdict.FAILED


def summary(ok=8, errors=0, **changes):
    return Summary(n_cells=ok + errors, n_ok=ok, n_error=errors, complete=True, **changes)


def running(many, **changes):
    job = many.running(**changes)
    return job, job.resources[0]


def test_a_complete_job_with_whole_summaries_has_succeeded(many):
    job, row = running(many)
    step = many.step(job, 200, sight=many.finished(row, DONE), summary=summary())
    assert step.end == (Outcome.SUCCEEDED, Reason.COMPLETED)
    assert step.job.indexes.completed == "0-3"
    assert step.job.resources[0].state is ResourceState.DELETING
    assert step.asked == (LookKind.MARKERS, LookKind.SIGHT, LookKind.SUMMARY)


@pytest.mark.parametrize(
    ("told", "end"),
    [
        (summary(6, 2), (Outcome.PARTIAL, Reason.PARTIAL_CELLS)),
        (summary(0, 8), (Outcome.FAILED, Reason.PARTIAL_CELLS)),
        (None, (Outcome.SUCCEEDED, Reason.COMPLETED)),
    ],
    ids=["some cells failed", "all cells failed", "no worker left a summary"],
)
def test_what_a_complete_job_achieved_its_summaries_say(many, told, end):
    job, row = running(many)
    assert many.step(job, 200, sight=many.finished(row, DONE), summary=told).end == end


def test_indexes_that_failed_for_good_are_named_beside_the_cells_of_the_others(many):
    job, row = running(many)
    failed = many.finished(row, FAILED, succeeded=3, failed_indexes="3", completed_indexes="0-2")
    pods = PodsSeen(pods=(many.failed_pod(3, exit_code=7),))
    step = many.step(job, 200, sight=failed, summary=summary(6), pods=pods)
    assert step.end == (Outcome.PARTIAL, Reason.FAILED_INDEXES)
    assert step.job.detail == "index 3 failed (4 workers); w-3: exit_code=7"
    assert (step.job.indexes.completed, step.job.indexes.failed) == ("0-2", "3")


@pytest.mark.parametrize(
    ("told", "end"),
    [
        (summary(0, 6), (Outcome.FAILED, Reason.FAILED_INDEXES)),
        (None, (Outcome.PARTIAL, Reason.FAILED_INDEXES)),
    ],
    ids=["no cell came out well", "who succeeded left no summary"],
)
def test_what_is_partial_depends_on_cells(many, told, end):
    job, row = running(many)
    failed = many.finished(row, FAILED, succeeded=3, failed_indexes="3")
    assert many.step(job, 200, sight=failed, summary=told, pods=PodsSeen()).end == end


def test_a_server_that_does_not_count_failed_indexes_names_those_that_completed(many):
    job, row = running(many)
    failed = many.finished(row, FAILED, succeeded=2, completed_indexes="0,2", detail="BackoffLimitExceeded")
    step = many.step(job, 200, sight=failed, summary=summary(4), pods=PodsSeen())
    assert step.end == (Outcome.PARTIAL, Reason.FAILED_INDEXES)
    assert step.job.detail == "BackoffLimitExceeded; only indexes 0,2 of 4 completed"


def test_a_list_of_indexes_never_fills_the_jobs_document(many):
    job, row = running(many)
    odd, even = (",".join(map(str, range(first, 100_000, 2))) for first in (1, 0))
    failed = many.finished(row, FAILED, succeeded=50_000, failed_indexes=odd, completed_indexes=even)
    after = many.step(job, 200, sight=failed, summary=summary(6), pods=PodsSeen()).job
    assert after.detail.startswith("indexes 1,3,5,")
    assert after.detail.endswith(",... failed (4 workers)")
    assert len(after.detail) < 1100
    assert len(after.indexes.completed) + len(after.indexes.failed) < 41_000
    assert after.indexes.completed.endswith(",...")


def test_a_task_has_no_cells_so_a_failed_index_fails_it(many):
    job, row = running(many, plan=many.plan(kind=SubmitKind.TASK))
    failed = many.finished(row, FAILED, succeeded=3, failed_indexes="3")
    step = many.step(job, 200, sight=failed, pods=PodsSeen())
    assert step.end == (Outcome.FAILED, Reason.FAILED_INDEXES)
    assert LookKind.SUMMARY not in step.asked


DISRUPTED = {"exit_code": 143, "disrupted": True, "reason": "Evicted"}


@pytest.mark.parametrize(
    ("pods", "end", "word"),
    [
        ([{"exit_code": 3}], (Outcome.FAILED, Reason.EXIT_CODE), "w-0: exit_code=3"),
        (
            [{"exit_code": 3}, {"exit_code": 137, "out_of_memory": True}],
            (Outcome.FAILED, Reason.OUT_OF_MEMORY),
            "w-1: ran out of memory",
        ),
        ([DISRUPTED, DISRUPTED], (Outcome.FAILED, Reason.PREEMPTED), "w-0: Evicted"),
        ([DISRUPTED, {"exit_code": 3}], (Outcome.FAILED, Reason.EXIT_CODE), "w-1: exit_code=3"),
        (
            [{"exit_code": 137, "reason": "DeadlineExceeded"}],
            (Outcome.TIMED_OUT, Reason.TTL_EXPIRED),
            "w-0: ran longer than a pod may",
        ),
        ([{"reason": "NodeAffinity"}], (Outcome.FAILED, Reason.EXIT_CODE), "w-0: NodeAffinity"),
        ([], (Outcome.FAILED, Reason.EXIT_CODE), "indexes 0-3 failed (4 workers)"),
    ],
    ids=[
        "exit code",
        "one ran out of memory",
        "all taken away",
        "one taken away, one failed by itself",
        "a pod's own time limit",
        "refused by its node",
        "pods are gone",
    ],
)
def test_where_no_index_succeeded_the_pods_say_why(many, pods, end, word):
    job, row = running(many)
    failed = many.finished(row, FAILED, failed_indexes="0-3")
    listed = PodsSeen(pods=tuple(many.failed_pod(index, **pod) for index, pod in enumerate(pods)))
    step = many.step(job, 200, sight=failed, summary=None, pods=listed)
    assert step.end == end
    assert step.job.detail.endswith(word)


def test_pods_that_cannot_be_read_change_no_outcome(many):
    job, row = running(many)
    failed = many.finished(row, FAILED, succeeded=3, failed_indexes="3")
    step = many.step(job, 200, sight=failed, summary=summary(6))
    assert step.end == (Outcome.PARTIAL, Reason.FAILED_INDEXES)
    assert LookKind.PODS in step.asked


def test_the_jobs_own_time_limit_is_a_time_out(many):
    job, row = running(many)
    failed = many.finished(row, FAILED, failed_reason="DeadlineExceeded", detail="DeadlineExceeded: too long")
    step = many.step(job, 9000, sight=failed, summary=None, pods=PodsSeen())
    assert step.end == (Outcome.TIMED_OUT, Reason.TTL_EXPIRED)


@pytest.mark.parametrize("verdict", [DONE, FAILED])
@pytest.mark.parametrize(
    ("changes", "at"),
    [({}, 200), ({"cancel_requested": True}, 200), ({}, 60 + 3600), ({}, 60 + 3600 + 600)],
    ids=["at ease", "cancelled", "past its limit", "long past its limit"],
)
def test_unread_summaries_are_waited_for_and_never_guessed(many, verdict, changes, at):
    job, row = running(many, **changes)
    step = many.step(job, at, sight=many.finished(row, verdict), pods=PodsSeen())
    assert step.end == (None, None)
    assert step.tombstones == ()
    assert step.job.phase is Phase.RUNNING


@pytest.mark.parametrize("verdict", [DONE, FAILED])
@pytest.mark.parametrize(
    ("changes", "at"),
    [({"cancel_requested": True}, 200), ({}, 60 + 3600), ({}, 86400)],
    ids=["cancel", "run limit", "long ago"],
)
def test_a_finished_job_beats_what_the_same_step_would_end_it_for(many, verdict, changes, at):
    job, row = running(many, **changes)
    step = many.step(job, at, sight=many.finished(row, verdict), summary=summary(), pods=PodsSeen())
    assert step.tombstones == ()
    assert step.job.outcome is (Outcome.SUCCEEDED if verdict is DONE else Outcome.FAILED)


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (Reason.CANCELLED, Outcome.CANCELLED),
        (Reason.RUN_TIMEOUT, Outcome.TIMED_OUT),
        (Reason.UNSCHEDULABLE, Outcome.NO_CAPACITY),
        (Reason.QUOTA_BLOCKED, Outcome.NO_CAPACITY),
        (Reason.IMAGE_PULL, Outcome.FAILED),
        (Reason.JOB_DELETED, Outcome.FAILED),
        (Reason.STALLED, Outcome.FAILED),
    ],
)
def test_what_the_plane_has_written_stands_whatever_the_job_says_later(many, reason, outcome):
    """A crash between the tombstone and the save: the next step reads it first and ends the job the same way."""
    job, row = running(many)
    pair = many.ended(many.tombstone(reason))
    step = many.step(job, 200, markers=pair, sight=many.finished(row, DONE), summary=summary())
    assert step.end == (outcome, reason)
    assert LookKind.SIGHT not in step.asked


def test_a_tombstone_that_goes_by_the_summaries_waits_for_them(many):
    job, _ = running(many)
    pair = many.ended(many.tombstone(Reason.SETTLED_BY_SUMMARY))
    assert many.step(job, 200, markers=pair).end == (None, None)
    assert many.step(job, 200, markers=pair, summary=summary()).end == (
        Outcome.SUCCEEDED,
        Reason.SETTLED_BY_SUMMARY,
    )


def test_the_first_start_and_the_jobs_own_end_are_the_times_of_the_run(many):
    job, row = running(many)
    done = many.finished(row, DONE, completed_at=many.at(190))
    phases = many.step(job, 250, sight=done, summary=summary()).job.phases
    assert (phases.provision_s, phases.execute_s, phases.total_wall_s) == (60, 130, 190)


def test_a_job_that_was_over_before_anybody_looked_is_settled_with_the_times_it_tells(many):
    job = many.provisioning()
    done = many.finished(job.resources[0], DONE, completed_at=many.at(21))
    phases = many.step(job, 250, sight=done, summary=summary()).job.phases
    assert (phases.provision_s, phases.execute_s, phases.total_wall_s) == (1, 20, 21)


@pytest.mark.parametrize("stage", ["started", "pods"])
def test_a_running_job_shows_how_far_its_indexes_are(many, stage):
    job = many.provisioning()
    sight = many.sight(job.resources[0], workers=many.workers(active=2, completed_indexes="0-1"))
    there = {"sight": sight, "pods": PodsSeen(started_at=many.at(50), scheduled_at=many.at(20))}
    if stage == "started":
        there["markers"] = MarkerPair(started=many.started(50))
    after = many.step(job, 120, **there).job
    assert (after.phase, after.started_at) == (Phase.RUNNING, many.at(50))
    again = many.step(after, 700, sight=sight, cells=None).job
    assert (again.indexes.active, again.indexes.completed, again.indexes.completions) == (2, "0-1", 4)

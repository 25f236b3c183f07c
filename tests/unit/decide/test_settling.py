"""How a job ends: the outcome table, and that it is decided once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.decide import decide, wanted
from runtender.model import MarkerStatus, Outcome, Phase, Reason, ResourceState, SubmitKind, Summary
from runtender.observed import Absent, LiveState, MarkerPair, Seen


def summary(n_cells=10, n_error=0, *, complete=True):
    return Summary(n_cells=n_cells, n_ok=n_cells - n_error, n_error=n_error, complete=complete)


def seen_end(a, row, marker, of=None):
    return Seen(markers={row.nonce: a.ended(marker)}, summaries={row.nonce: of})


OUTCOMES = {
    "exit 0 and no failed cell succeeds": (
        {},
        summary(),
        (Outcome.SUCCEEDED, Reason.COMPLETED),
    ),
    "exit 0 without a summary succeeds": ({}, None, (Outcome.SUCCEEDED, Reason.COMPLETED)),
    "exit 0 with some failed cells is partial": (
        {},
        summary(n_error=3),
        (Outcome.PARTIAL, Reason.PARTIAL_CELLS),
    ),
    "exit 0 with only failed cells fails": (
        {},
        summary(n_error=10),
        (Outcome.FAILED, Reason.PARTIAL_CELLS),
    ),
    "exit 3 fails with its code": (
        {"status": MarkerStatus.FAILED, "exit_code": 3},
        None,
        (Outcome.FAILED, Reason.EXIT_CODE),
    ),
    "out of memory fails as such": (
        {"status": MarkerStatus.FAILED, "exit_code": 137, "reason": Reason.OUT_OF_MEMORY},
        None,
        (Outcome.FAILED, Reason.OUT_OF_MEMORY),
    ),
    "an interrupted worker that was preempted fails as preempted": (
        {"status": MarkerStatus.INTERRUPTED, "exit_code": 143, "preempted": True},
        None,
        (Outcome.FAILED, Reason.PREEMPTED),
    ),
    "an interrupted worker nobody stopped is lost": (
        {"status": MarkerStatus.INTERRUPTED, "exit_code": 143, "signal": "TERM"},
        None,
        (Outcome.FAILED, Reason.WORKER_LOST),
    ),
}


@pytest.mark.parametrize(("marker", "of", "wanted_end"), OUTCOMES.values(), ids=OUTCOMES.keys())
def test_the_terminal_marker_gives_the_outcome(a, marker, of, wanted_end):
    job = a.running()
    row = job.resources[0]
    decision = decide(job, seen_end(a, row, replace(a.marker(), **marker), of), a.ctx(100))
    assert (decision.job.outcome, decision.job.reason) == wanted_end
    assert decision.job.phase is Phase.STOPPING
    assert decision.job.resources[0].state is ResourceState.DELETING


def test_an_interrupted_worker_of_a_cancelled_job_is_cancelled(a):
    job = a.running(cancel_requested=True)
    marker = a.marker(MarkerStatus.INTERRUPTED, signal="TERM")
    decision = decide(job, seen_end(a, job.resources[0], marker), a.ctx(100))
    assert decision.job.outcome is Outcome.CANCELLED


def test_a_worker_interrupted_after_its_limit_has_timed_out(a):
    job = a.running()
    marker = a.marker(MarkerStatus.INTERRUPTED, at=60 + 3600 + 1)
    decision = decide(job, seen_end(a, job.resources[0], marker), a.ctx(3700))
    assert (decision.job.outcome, decision.job.reason) == (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT)


@pytest.mark.parametrize("phase", [Phase.PROVISIONING, Phase.RUNNING])
def test_a_terminal_marker_settles_from_any_phase(a, phase):
    job = replace(a.running(), phase=phase)
    decision = decide(job, seen_end(a, job.resources[0], a.marker()), a.ctx(100))
    assert decision.job.outcome is Outcome.SUCCEEDED


def test_a_terminal_marker_settles_even_before_the_create_was_answered(a):
    row = a.row(state=ResourceState.INTENDED, created_at=None, token="other", until=a.at(90))
    job = a.provisioning(row=row)
    decision = decide(job, seen_end(a, row, a.marker(at=30)), a.ctx(30))
    assert decision.job.outcome is Outcome.SUCCEEDED
    assert decision.job.resources[0].state is ResourceState.INTENDED, "the holder still owns the call"


def test_a_task_needs_no_summary(a):
    job = a.running(plan=a.plan(kind=SubmitKind.TASK))
    row = job.resources[0]
    seen = Seen(markers={row.nonce: a.ended(a.marker())})
    assert wanted(job, seen, a.ctx(100)) == ()
    assert decide(job, seen, a.ctx(100)).job.outcome is Outcome.SUCCEEDED


def test_a_summary_that_cannot_be_read_settles_nothing_yet(a):
    job = a.running()
    row = job.resources[0]
    seen = Seen(markers={row.nonce: a.ended(a.marker())})
    decision = decide(job, seen, a.ctx(100))
    assert decision.job.outcome is None
    assert decision.tombstones == ()


def test_an_unread_arbiter_decides_nothing(a):
    job = a.running(cancel_requested=True)
    decision = decide(job, Seen(sights={job.resources[0].nonce: Absent()}), a.ctx(99999))
    assert decision.job.outcome is None
    assert decision.tombstones == ()
    assert decision.effects == ()


def test_a_settled_outcome_never_changes(a):
    job = a.running()
    row = job.resources[0]
    settled = decide(job, seen_end(a, row, a.marker()), a.ctx(100)).job
    later = Seen(
        markers={row.nonce: a.ended(a.marker(MarkerStatus.FAILED))},
        sights={row.nonce: a.sight(row, LiveState.ENDED)},
    )
    again = decide(replace(settled, cancel_requested=True), later, a.ctx(200)).job
    assert (again.outcome, again.reason, again.ended_at) == (
        settled.outcome,
        settled.reason,
        settled.ended_at,
    )


def test_each_transition_has_one_history_row_with_its_cause(a):
    job = a.running()
    settled = decide(job, seen_end(a, job.resources[0], a.marker()), a.ctx(100)).job
    assert [(row.phase, row.outcome, row.cause) for row in settled.history] == [
        (Phase.STOPPING, Outcome.SUCCEEDED, "terminal marker SUCCEEDED by guest")
    ]


def test_times_count_from_acceptance_so_the_search_for_capacity_is_in_them(a):
    job = a.running(row=a.row(placement=1, since=a.at(40)))
    marker = a.marker(at=150, execute_s=80.0)
    settled = decide(job, seen_end(a, job.resources[0], marker), a.ctx(151)).job
    assert (settled.phases.provision_s, settled.phases.execute_s, settled.phases.total_wall_s) == (
        60.0,
        80.0,
        150.0,
    )


def test_a_worker_that_never_started_spent_everything_on_provisioning(a):
    job = a.provisioning()
    row = job.resources[0]
    marker = a.marker(MarkerStatus.FAILED, at=40, reason=Reason.IMAGE_PULL)
    seen = Seen(markers={row.nonce: a.ended(marker, started_at=None)})
    settled = decide(job, seen, a.ctx(41)).job
    assert (settled.phases.provision_s, settled.phases.execute_s) == (40.0, None)


def test_the_planes_own_marker_means_its_reason(a):
    for reason, outcome in {
        Reason.CANCELLED: Outcome.CANCELLED,
        Reason.RUN_TIMEOUT: Outcome.TIMED_OUT,
        Reason.TTL_EXPIRED: Outcome.TIMED_OUT,
        Reason.STALLED: Outcome.FAILED,
        Reason.WORKER_LOST: Outcome.FAILED,
    }.items():
        job = a.running()
        decision = decide(job, seen_end(a, job.resources[0], a.tombstone(reason)), a.ctx(100))
        assert (decision.job.outcome, decision.job.reason) == (outcome, reason)


def test_a_disarming_tombstone_settles_nothing(a):
    row = a.row(state=ResourceState.DELETING)
    job = a.provisioning(row=row)
    seen = Seen(markers={row.nonce: MarkerPair(terminal=a.tombstone(None), terminal_stored=True)})
    assert decide(job, seen, a.ctx(100)).job.outcome is None


def test_failed_cells_say_why(a):
    job = a.running()
    of = Summary(n_cells=4, n_ok=3, n_error=1, complete=True, detail={"first_errors": "a: theta: too short"})
    decision = decide(job, seen_end(a, job.resources[0], a.marker(), of), a.ctx(100))
    assert decision.job.detail == "1 of 4 cells failed; the first: a: theta: too short"

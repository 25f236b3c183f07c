"""The specified verdicts of a look at a job, row by row: what was read of VM and marker, and what follows from it."""

from __future__ import annotations

import json

import pytest

from runtender.decide import decide
from runtender.ids import marker_object
from runtender.model import MarkerStatus, Outcome, Phase, Reason
from runtender.observed import Absent, DeleteAnswer, Fate, LiveState, MarkerPair, Seen
from runtender.ports import ApiAnswer
from runtender.runtimes.gce_vm import GceVm
from runtender.wire.markers import parse_marker

RUNTIME = GceVm()


def read(code, native=""):
    return RUNTIME.looked(ApiAnswer(status=code, body={"status": native}))


def watched(a, sight, **changes):
    """A running job whose worker has started and has not ended, and what a look at its VM gave."""
    job = a.running(**changes)
    row = job.resources[0]
    sights = {} if sight is None else {row.nonce: sight}
    return job, Seen(
        markers={row.nonce: MarkerPair(started=a.started())},
        sights=sights,
        serials={row.nonce: None},
        summaries={row.nonce: None},
        fates={row.nonce: Fate()},
    )


@pytest.mark.parametrize(
    ("status", "exit_code", "outcome", "words"),
    [
        pytest.param(MarkerStatus.SUCCEEDED, 0, Outcome.SUCCEEDED, "", id="acceptance-C16"),
        pytest.param(MarkerStatus.FAILED, 2, Outcome.FAILED, "2", id="acceptance-C17"),
    ],
)
def test_a_terminal_marker_is_the_verdict(a, status, exit_code, outcome, words):
    job = a.running()
    row = job.resources[0]
    ended = a.ended(a.marker(status, exit_code=exit_code))
    settled = decide(job, Seen(markers={row.nonce: ended}, summaries={row.nonce: None}), a.ctx(100)).job
    assert settled.outcome is outcome
    assert words in settled.detail


@pytest.mark.parametrize("native", [pytest.param("RUNNING", id="acceptance-C18")])
def test_a_vm_that_runs_without_a_word_is_running(a, native):
    job, seen = watched(a, read(200, native))
    after = decide(job, seen, a.ctx(100)).job
    assert (after.phase, after.outcome) == (Phase.RUNNING, None)


@pytest.mark.parametrize("status", [pytest.param(404, id="acceptance-C19")])
def test_only_a_404_says_that_there_is_no_vm(status):
    assert read(status) == Absent()


@pytest.mark.parametrize("state", [pytest.param(LiveState.RUNNING, id="acceptance-C20")])
def test_the_marker_wins_over_a_vm_that_still_runs(a, state):
    job = a.running()
    row = job.resources[0]
    seen = Seen(
        markers={row.nonce: a.ended(a.marker())},
        summaries={row.nonce: None},
        sights={row.nonce: a.sight(row, state)},
    )
    assert decide(job, seen, a.ctx(100)).job.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("native", [pytest.param("TERMINATED", id="acceptance-C21")])
def test_a_vm_that_ended_without_a_word_has_failed(a, native):
    job, seen = watched(a, read(200, native), row=a.row(missing_since=a.at(80)))
    (tombstone,) = decide(job, seen, a.ctx(100)).tombstones
    assert tombstone.reason is Reason.WORKER_LOST


@pytest.mark.parametrize("status", [pytest.param(503, id="acceptance-C22"), pytest.param(0, id="no answer")])
def test_an_api_that_fails_says_nothing(a, status):
    job, seen = watched(a, read(status))
    decision = decide(job, seen, a.ctx(100))
    assert (decision.job.outcome, decision.tombstones) == (None, ())


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        pytest.param(200, DeleteAnswer(accepted=True), id="acceptance-C23 there"),
        pytest.param(404, DeleteAnswer(gone=True), id="acceptance-C23 absent"),
    ],
)
def test_a_delete_stops_a_vm_or_finds_it_gone(status, answer):
    assert RUNTIME.deleted(ApiAnswer(status=status)) == answer


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"status": "SUCC', id="acceptance-C24 cut JSON"),
        pytest.param(b'["SUCCEEDED"]', id="acceptance-C24 a list"),
    ],
)
def test_what_is_no_json_object_is_no_marker(a, body):
    job = a.job()
    name = marker_object(job.job_key, a.row().nonce, 0, "terminal")
    assert parse_marker(name, body, a.t0) is None
    assert parse_marker(name, json.dumps({"status": "SUCCEEDED"}).encode(), a.t0) is not None


@pytest.mark.parametrize("late", [pytest.param(12, id="acceptance-C25")])
def test_a_marker_that_shows_up_after_its_vm_has_gone_still_counts(a, late):
    job, seen = watched(a, Absent(), row=a.row(missing_since=a.at(100)))
    assert decide(job, seen, a.ctx(100 + late)).tombstones == ()
    row = job.resources[0]
    told = Seen(markers={row.nonce: a.ended(a.marker(at=100 + late))}, summaries={row.nonce: None})
    assert decide(job, told, a.ctx(100 + late)).job.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("grace", [pytest.param(15, id="acceptance-C26")])
def test_a_vm_gone_without_a_marker_fails_after_the_grace(a, grace):
    job, seen = watched(a, Absent(), row=a.row(missing_since=a.at(100)))
    assert decide(job, seen, a.ctx(100 + grace - 1)).tombstones == ()
    (tombstone,) = decide(job, seen, a.ctx(100 + grace)).tombstones
    job, row = a.running(), a.row()
    spoken = Seen(markers={row.nonce: a.ended(a.tombstone(tombstone.reason))})
    settled = decide(job, spoken, a.ctx(200)).job
    assert (settled.outcome, settled.reason) == (Outcome.FAILED, Reason.WORKER_LOST)


@pytest.mark.parametrize(
    "phases",
    [pytest.param((60.0, 90.0, 150.0), id="acceptance-C28 (the plane's own): all three are measured")],
)
def test_the_times_of_a_run_add_up(a, phases):
    job = a.running(started=60)
    row = job.resources[0]
    marker = a.marker(at=150, execute_s=90.0)
    seen = Seen(markers={row.nonce: a.ended(marker)}, summaries={row.nonce: None})
    settled = decide(job, seen, a.ctx(151)).job
    assert (settled.phases.provision_s, settled.phases.execute_s, settled.phases.total_wall_s) == phases

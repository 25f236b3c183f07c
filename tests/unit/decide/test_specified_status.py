"""The specified ends of jobs and runs, row by row: from cells to a job's outcome, from jobs to the run's word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.decide import decide, status_word
from runtender.model import (
    Cells,
    FamilyEntry,
    MarkerStatus,
    Outcome,
    Phase,
    Reason,
    Summary,
    Timing,
)
from runtender.observed import MarkerPair, Seen

S, P, F = Outcome.SUCCEEDED, Outcome.PARTIAL, Outcome.FAILED


def outcome_of(a, summary):
    job = a.running()
    row = job.resources[0]
    seen = Seen(markers={row.nonce: a.ended(a.marker())}, summaries={row.nonce: summary})
    return decide(job, seen, a.ctx(100)).job.outcome


def word_for(*outcomes):
    entries = (FamilyEntry(job_key="k", attempt=1, phase=Phase.DONE, outcome=each) for each in outcomes)
    return status_word({str(number): entry for number, entry in enumerate(entries)})


@pytest.mark.parametrize(
    ("cells", "errors", "outcome"),
    [
        pytest.param(100, 0, S, id="acceptance-H7 all"),
        pytest.param(100, 1, P, id="acceptance-H7 some"),
        pytest.param(6, 6, F, id="acceptance-H7 none"),
        pytest.param(0, 0, S, id="acceptance-H7 (the plane's own): nothing to do is no failure"),
    ],
)
def test_the_cells_give_the_outcome(a, cells, errors, outcome):
    counted = Summary(n_cells=cells, n_ok=cells - errors, n_error=errors, complete=True)
    assert outcome_of(a, counted) is outcome


@pytest.mark.parametrize("summary", [pytest.param(None, id="acceptance-H8")])
def test_without_a_count_the_exit_code_is_believed(a, summary):
    assert outcome_of(a, summary) is S


@pytest.mark.parametrize(
    ("outcomes", "word"),
    [
        pytest.param((S, S), "COMPLETED", id="acceptance-H9 all"),
        pytest.param((F, F), "FAILED", id="acceptance-H9 none"),
        pytest.param((S, F), "PARTIAL", id="acceptance-H9 some"),
        pytest.param((S, P), "PARTIAL", id="acceptance-H11"),
    ],
)
def test_the_families_give_the_runs_word(outcomes, word):
    assert word_for(*outcomes) == word


@pytest.mark.parametrize(
    ("elapsed", "cells", "grace", "stalls"),
    [
        pytest.param(2699, Cells(), 2700, False, id="acceptance-H13 within the grace"),
        pytest.param(2700, Cells(), 2700, True, id="acceptance-H13 past it"),
        pytest.param(9999, None, 2700, False, id="acceptance-H13 cells not read"),
        pytest.param(9999, Cells(), 0, False, id="acceptance-H14"),
    ],
)
def test_silence_is_a_stall_only_after_the_grace(a, elapsed, cells, grace, stalls):
    job = a.running()
    job = replace(job, deadlines=replace(job.deadlines, run=a.at(1_000_000)))
    row = job.resources[0]
    seen = Seen(
        markers={row.nonce: MarkerPair(started=a.started())},
        sights={row.nonce: a.sight(row)},
        serials={row.nonce: None},
        summaries={row.nonce: None},
        cells=cells,
    )
    timing = replace(Timing(), stall_grace=grace * (a.at(1) - a.at(0)))
    found = decide(job, seen, a.ctx(60 + elapsed, timing=timing)).tombstones
    assert [tombstone.reason for tombstone in found] == ([Reason.STALLED] if stalls else [])


@pytest.mark.parametrize("late", [pytest.param(MarkerStatus.FAILED, id="acceptance-H15")])
def test_a_cancelled_job_stays_cancelled(a, late):
    job = a.running(cancel_requested=True)
    row = job.resources[0]
    cancelled = Seen(markers={row.nonce: a.ended(a.tombstone(Reason.CANCELLED))})
    settled = decide(job, cancelled, a.ctx(100)).job
    after = decide(settled, Seen(markers={row.nonce: a.ended(a.marker(late))}), a.ctx(200)).job
    assert after.outcome is Outcome.CANCELLED

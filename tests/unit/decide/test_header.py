"""The run header is the roll-up of its families' latest attempts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.decide import roll_up, status_word, with_job
from runtender.model import FamilyEntry, Outcome, Phase, Run, SubmitKind

S, P, F, T, C, N = (
    Outcome.SUCCEEDED,
    Outcome.PARTIAL,
    Outcome.FAILED,
    Outcome.TIMED_OUT,
    Outcome.CANCELLED,
    Outcome.NO_CAPACITY,
)


def families(*outcomes, phase=Phase.STOPPING):
    return {
        str(i): FamilyEntry(job_key="k", attempt=1, phase=phase, outcome=o) for i, o in enumerate(outcomes)
    }


@pytest.mark.parametrize(
    ("outcomes", "whole"),
    [
        ((S, S), S),
        ((S, None), None),
        ((S, F), P),
        ((P, C), P),
        ((F, F), F),
        ((F, T), T),
        ((C, T), C),
        ((N, F), N),
        ((N, C, T), C),
        ((), None),
    ],
)
def test_outcomes_roll_up(outcomes, whole):
    assert roll_up(families(*outcomes)) is whole


@pytest.mark.parametrize(
    ("outcomes", "phase", "word"),
    [
        ((S,), Phase.DONE, "COMPLETED"),
        ((P,), Phase.DONE, "PARTIAL"),
        ((C,), Phase.DONE, "CANCELLED"),
        ((T,), Phase.DONE, "FAILED"),
        ((N,), Phase.DONE, "FAILED"),
        ((None, None), Phase.AWAITING_CAPACITY, "AWAITING_CAPACITY"),
        ((None, S), Phase.RUNNING, "RUNNING"),
    ],
)
def test_the_status_word_is_the_specs(outcomes, phase, word):
    assert status_word(families(*outcomes, phase=phase)) == word


def header(a):
    return Run(
        run_id="r",
        kind=SubmitKind.FORECAST,
        request={},
        labels={},
        requested_by="",
        families={},
        status="RUNNING",
        created_at=a.t0,
    )


def test_the_header_follows_the_latest_attempt(a):
    job = a.job()
    second = replace(job, attempt=2, phase=Phase.RUNNING)
    run = with_job(header(a), second, a.at(1))
    late_news_of_the_first = replace(job, outcome=F, phase=Phase.DONE)
    assert with_job(run, late_news_of_the_first, a.at(2)) == run


def test_the_end_is_stamped_once_and_lifted_by_a_new_attempt(a):
    done = replace(a.job(), outcome=F, phase=Phase.STOPPING)
    run = with_job(header(a), done, a.at(10))
    assert (run.outcome, run.finished_at) == (F, a.at(10))
    again = with_job(run, replace(done, phase=Phase.DONE), a.at(20))
    assert again.finished_at == a.at(10)
    reopened = with_job(again, replace(a.job(), attempt=2), a.at(30))
    assert (reopened.outcome, reopened.finished_at) == (None, None)

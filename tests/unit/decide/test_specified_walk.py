"""The specified walk, row by row, on ours: what was a loop that slept is here a stored state that is stepped on.

"Sleeps" are the waits between passes that the job is saved with, "calls" the rows it intends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from runtender.capacity.classify import classify_http
from runtender.decide import decide, record_create
from runtender.engine.telemetry import capacity_ledger
from runtender.model import (
    Job,
    Outcome,
    Phase,
    Placement,
    Reason,
    ResourceState,
    Scope,
    Verdict,
    WalkPolicy,
)
from runtender.observed import Accepted, Refusal, Seen
from runtender.ports import ApiAnswer

OK = Accepted(operation="op")


def refusal(verdict, words="words"):
    return Refusal(verdict=verdict, scope=Scope.ZONE, code="CODE", message=words)


SHORT = refusal(Verdict.TRANSIENT_CAPACITY)
CEILING = refusal(Verdict.HARD_CEILING)
FAULT = refusal(Verdict.CONFIG_FAULT)


@dataclass
class Told:
    """What a walk came to. `saved` holds the job after each answer."""

    job: Job
    calls: str = ""
    slept: list[float] = field(default_factory=list)
    saved: list[Job] = field(default_factory=list)


@pytest.fixture
def walk(a):
    """Walk over zones `ce` until a create is taken or the job ends; answers are asked for by zone."""

    def go(answers, *, zones="ce", **policy):
        terms = {"backoff": timedelta(seconds=10), "backoff_multiplier": 1, "max_attempts": 0, **policy}
        plan = a.plan(
            placements=tuple(Placement(region="us-x1", zone=f"us-x1-{letter}") for letter in zones),
            walk=WalkPolicy(**terms),
            capacity_wait=timedelta(days=2),
        )
        told, at = Told(a.job(plan=plan)), 0.0
        while told.job.outcome is None:
            decision = decide(told.job, Seen(), a.ctx(at))
            told.job = decision.job
            if not decision.effects:
                if told.job.outcome is None:
                    told.slept.append((told.job.walk.resume_at - a.at(at)).total_seconds())
                    at += told.slept[-1]
                continue
            row = told.job.live[-1]
            told.calls += row.location[-1]
            told.job = record_create(told.job, row.nonce, answers.pop(0), a.ctx(at))
            told.saved.append(told.job)
            if told.job.live[-1].state is ResourceState.CREATED:
                break
            if told.job.outcome is None:
                gone = tuple(replace(one, state=ResourceState.GONE) for one in told.job.resources)
                told.job = replace(told.job, resources=gone)
        return told

    return go


@pytest.mark.parametrize(
    ("answers", "calls", "slept"),
    [
        pytest.param([OK], "c", [], id="acceptance-F10"),
        pytest.param([SHORT, SHORT, OK], "cec", [10], id="acceptance-F11"),
        pytest.param([SHORT, OK], "ce", [], id="acceptance-F12"),
        pytest.param([CEILING, SHORT, SHORT, OK], "ceee", [10, 10], id="acceptance-F14"),
    ],
)
def test_a_walk_that_finds_capacity(walk, answers, calls, slept):
    told = walk(answers)
    assert (told.calls, told.slept) == (calls, slept)
    assert told.job.live[-1].state is ResourceState.CREATED
    assert len(told.job.walk.ledger) == len(calls) - 1, "a success is no failed attempt"


@pytest.mark.parametrize(
    ("answers", "policy", "calls", "sleeps"),
    [
        pytest.param([CEILING, CEILING], {}, "ce", 0, id="acceptance-F15"),
        pytest.param([SHORT] * 9, {"max_attempts": 3}, "cec", 1, id="acceptance-F16"),
        pytest.param([SHORT] * 9, {"max_passes": 1, "zones": "cef"}, "cef", 0, id="acceptance-F17"),
        pytest.param([SHORT] * 9, {"max_passes": 0, "max_attempts": 5}, "cecec", 2, id="acceptance-F18"),
    ],
)
def test_a_walk_that_finds_none_says_how_far_it_went(walk, answers, policy, calls, sleeps):
    told = walk(answers, **policy)
    assert (told.calls, len(told.slept)) == (calls, sleeps)
    assert (told.job.outcome, told.job.reason) == (Outcome.NO_CAPACITY, Reason.CAPACITY_EXHAUSTED)
    assert f"{len(calls)} attempt(s)" in told.job.detail
    assert told.job.walk.exhausted


@pytest.mark.parametrize((), [pytest.param(id="acceptance-F13")])
def test_a_fault_of_the_request_ends_it_in_the_apis_own_words(walk):
    told = walk([refusal(Verdict.CONFIG_FAULT, "no such service account")])
    assert told.calls == "c"
    assert (told.job.outcome, told.job.reason) == (Outcome.FAILED, Reason.CONFIG_FAULT)
    assert "no such service account" in told.job.detail
    assert not told.job.walk.exhausted


@pytest.mark.parametrize((), [pytest.param(id="acceptance-F19")])
def test_without_bounds_it_goes_on_until_there_is_capacity(walk):
    told = walk([SHORT] * 60 + [OK], max_wall=timedelta())
    assert (told.calls, told.job.outcome) == ("ce" * 30 + "c", None)


@pytest.mark.parametrize((), [pytest.param(id="acceptance-F20")])
def test_each_failure_is_in_the_saved_job_at_once(walk):
    told = walk([SHORT, SHORT, OK])
    assert [capacity_ledger(job)["n_attempts"] for job in told.saved] == [1, 2, 2]


@pytest.mark.parametrize((), [pytest.param(id="acceptance-F22")])
def test_the_last_ledger_of_a_failed_walk_says_that_it_is_exhausted(walk):
    told = walk([SHORT] * 9, max_passes=1)
    assert [capacity_ledger(job)["exhausted"] for job in (told.saved[-1], told.job)] == [False, True]


@pytest.mark.parametrize((), [pytest.param(id="acceptance-F23 (the plane's own)")])
def test_without_a_placement_it_ends_at_once_and_calls_nobody(walk):
    told = walk([], zones="")
    assert (told.calls, told.slept, told.job.phase) == ("", [], Phase.STOPPING)
    assert (told.job.outcome, told.job.reason) == (Outcome.NO_CAPACITY, Reason.CAPACITY_EXHAUSTED)


@pytest.mark.parametrize((), [pytest.param(id="acceptance-F25")])
def test_2000_characters_of_the_apis_words_are_kept(walk):
    long = classify_http(ApiAnswer(status=429, body={"error": {"message": "x" * 5000}}))
    told = walk([replace(long, verdict=Verdict.TRANSIENT_CAPACITY), OK])
    (attempt,) = capacity_ledger(told.job)["attempts"]
    assert attempt["message"] == "x" * 2000


@pytest.mark.parametrize(("took", "kept"), [pytest.param(3.14159, 3.142, id="acceptance-F26")])
def test_an_attempt_is_timed_to_the_millisecond(a, took, kept):
    job = decide(a.job(), Seen(), a.ctx(0)).job
    job = record_create(job, job.live[-1].nonce, SHORT, a.ctx(took))
    assert capacity_ledger(job)["attempts"] == [
        {
            "candidate": "us-central1/us-central1-a",
            "verdict": "TRANSIENT_CAPACITY",
            "message": "words",
            "elapsed_seconds": kept,
        }
    ]


@pytest.mark.parametrize((), [pytest.param(id="acceptance-F31")])
def test_only_a_hard_ceiling_makes_a_candidate_dead(walk):
    told = walk([SHORT, CEILING, OK])
    assert [block.name for block in told.job.walk.blocked] == ["us-x1-e"]

"""What an event of one worker of many calls for, and when a job with many workers is looked at next."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runtender.decide import Stir, stirred_by
from runtender.decide.indexed import FEW_WORKERS
from runtender.ids import MarkerName
from runtender.model import Cells, Outcome, Phase, ResourceState
from runtender.observed import MarkerPair, WorkersVerdict

PAUSE = timedelta(seconds=10)
FEW, MANY = FEW_WORKERS, FEW_WORKERS + 1


def stirred(many, job, stage="terminal", index=0, at=500, **where):
    known = {"job_key": job.job_key, "nonce": job.resources[-1].nonce, "index": index, "stage": stage}
    return stirred_by(job, MarkerName(**{**known, **where}), many.at(at), PAUSE)


def pending(many, workers):
    return many.provisioning(plan=many.plan(worker_count=workers))


def running(many, workers, **changes):
    return many.running(plan=many.plan(worker_count=workers), **changes)


@pytest.mark.parametrize(
    ("workers", "stage", "stir"),
    [
        (FEW, "started", Stir.LOOK),
        (MANY, "started", Stir.FOLLOW),
        (FEW, "terminal", Stir.FOLLOW),
        (MANY, "terminal", Stir.FOLLOW),
    ],
)
def test_a_job_that_waits_for_its_workers_is_looked_at(many, workers, stage, stir):
    assert stirred(many, pending(many, workers), stage) is stir


@pytest.mark.parametrize("workers", [FEW, MANY])
def test_an_end_is_followed_by_a_second_look(many, workers):
    assert stirred(many, running(many, workers)) is Stir.FOLLOW


@pytest.mark.parametrize("workers", [FEW, MANY])
def test_a_second_start_tells_nothing_new(many, workers):
    assert stirred(many, running(many, workers), "started") is Stir.NOTHING


def test_few_workers_are_each_looked_at(many):
    assert stirred(many, running(many, FEW, stirred_at=many.at(499))) is Stir.FOLLOW


@pytest.mark.parametrize(("ago", "stir"), [(0, Stir.NOTHING), (9.9, Stir.NOTHING), (10, Stir.FOLLOW)])
def test_of_many_one_looks_for_all_that_end_with_it(many, ago, stir):
    assert stirred(many, running(many, MANY, stirred_at=many.at(500 - ago))) is stir


def test_the_planes_own_word_is_always_looked_at(many):
    """Its writer may have come to its end before it saved what the word stands for."""
    job = running(many, MANY, stirred_at=many.at(499))
    assert stirred(many, job, index=None) is Stir.LOOK


@pytest.mark.parametrize("workers", [FEW, MANY])
@pytest.mark.parametrize("stage", ["started", "terminal"])
def test_a_try_that_was_given_up_has_nothing_to_say(many, workers, stage):
    assert stirred(many, pending(many, workers), stage, nonce="f" * 16) is Stir.NOTHING


@pytest.mark.parametrize("phase", [Phase.STOPPING, Phase.DONE])
def test_a_job_that_has_ended_is_not_stirred(many, phase):
    job = replace(running(many, MANY), phase=phase, outcome=Outcome.SUCCEEDED)
    assert stirred(many, job) is Stir.NOTHING
    rows = (replace(job.resources[0], state=ResourceState.GONE),)
    gone = replace(job, resources=rows, phase=Phase.DONE)
    assert stirred(many, gone) is Stir.NOTHING


def test_a_single_machine_is_always_looked_at(a):
    job = a.running()
    where = MarkerName(job_key=job.job_key, nonce=job.resources[0].nonce, index=0, stage="terminal")
    assert stirred_by(job, where, a.at(500), PAUSE) is Stir.LOOK
    assert stirred_by(replace(job, phase=Phase.DONE), where, a.at(500), PAUSE) is Stir.NOTHING


class TestWakes:
    def test_a_stirred_job_is_looked_at_again_right_after_the_pause(self, many):
        """An end shows in the Job's status a moment after its marker; and whoever came within the pause was not heard."""
        job = running(many, MANY, stirred_at=many.at(500))
        sight = many.sight(job.resources[0])
        assert many.step(job, 500, thorough=False, sight=sight).job.wake_at == many.at(510)
        after = many.step(job, 530, sight=sight, cells=Cells(count=1, last_at=many.at(530))).job
        assert after.wake_at == many.at(530 + 600), "once is enough"

    def test_pods_that_do_not_start_are_looked_at_often(self, many):
        job = pending(many, FEW)
        after = many.step(job, 10, sight=many.sight(job.resources[0])).job
        assert after.wake_at == many.at(130)

    def test_a_start_sets_the_pace_of_a_run(self, many):
        job = pending(many, FEW)
        after = many.step(job, 70, markers=MarkerPair(started=many.started(60))).job
        assert (after.phase, after.wake_at) == (Phase.RUNNING, many.at(70 + 600))

    def test_unread_summaries_are_asked_for_again_within_the_watch_interval(self, many):
        job = running(many, FEW)
        sight = many.finished(job.resources[0], WorkersVerdict.SUCCEEDED)
        assert many.step(job, 500, sight=sight).job.wake_at <= many.at(500 + 600)

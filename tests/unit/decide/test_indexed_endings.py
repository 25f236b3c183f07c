"""Why a Job's run ends although its status says that it is at work: asked for, over time, in vain, or taken away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.decide import LookKind, SendDelete
from runtender.model import Cells, Outcome, Phase, Reason, ResourceState, SubmitKind, Summary
from runtender.observed import (
    Absent,
    LiveState,
    MarkerPair,
    PodsSeen,
    TroubleKind,
    WorkersVerdict,
)

CAPACITY, LIMIT = 2700, 3600


def summary(**changes):
    return replace(Summary(n_cells=8, n_ok=8, n_error=0, complete=True), **changes)


def pending(many, **changes):
    job = many.provisioning(**changes)
    return job, many.sight(job.resources[0])


def booting(many):
    """Its pods had a node at once, so that it is to speak by 1800."""
    job, sight = pending(many)
    return replace(job, deadlines=replace(job.deadlines, boot=many.at(1800))), sight


def running(many, **changes):
    job = many.running(**changes)
    return job, many.sight(job.resources[0])


def started(many):
    return MarkerPair(started=many.started())


class TestCancel:
    @pytest.mark.parametrize("phase", ["pending", "running"])
    @pytest.mark.parametrize("api", ["up", "down"])
    def test_it_goes_through_the_tombstone_of_the_whole_job(self, many, phase, api):
        job, sight = (pending if phase == "pending" else running)(many, cancel_requested=True)
        step = many.step(job, 100, **({"sight": sight} if api == "up" else {}))
        assert [tombstone.reason for tombstone in step.tombstones] == [Reason.CANCELLED]
        assert step.end == (Outcome.CANCELLED, Reason.CANCELLED)
        assert (step.job.phase, step.job.resources[0].state) == (Phase.STOPPING, ResourceState.DELETING)
        assert step.decision.more, "what is to go is removed by the same step"

    def test_one_that_started_meanwhile_is_cancelled_without_being_called_running_first(self, many):
        job, sight = pending(many, cancel_requested=True)
        step = many.step(job, 100, sight=sight, markers=started(many))
        assert step.end == (Outcome.CANCELLED, Reason.CANCELLED)
        assert step.job.phases.provision_s == 60


class TestUnread:
    """One call that fails never ends a run that gets on."""

    @pytest.mark.parametrize(
        ("phase", "at"),
        [("pending", 100), ("pending", CAPACITY + 1), ("running", 100), ("running", 3000)],
        ids=["acceptance-Z15", "past the wait for room", "at work", "at work for long"],
    )
    def test_nothing_is_decided_by_an_answer_that_says_nothing(self, many, phase, at):
        job, _ = (pending if phase == "pending" else running)(many)
        step = many.step(job, at)
        assert step.tombstones == ()
        assert (step.job.outcome, step.job.phase) == (None, job.phase)
        assert step.decision.effects == ()

    def test_a_deleted_job_is_not_taken_for_gone_while_the_api_is_down(self, many):
        row = many.row(missing_since=many.at(100))
        job = many.running(row=row)
        assert many.step(job, 500).job.outcome is None


class TestRunLimit:
    def test_a_run_at_work_past_its_limit_times_out(self, many):
        job, sight = running(many)
        cells = Cells(count=9, last_at=many.at(LIMIT))
        assert many.step(job, 60 + LIMIT - 1, sight=sight, summary=None, cells=cells).tombstones == ()
        step = many.step(job, 60 + LIMIT, sight=sight, summary=None)
        assert step.end == (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT)

    def test_one_that_has_delivered_everything_is_settled_by_its_summaries(self, many):
        job, sight = running(many)
        step = many.step(job, 60 + LIMIT, sight=sight, summary=summary())
        assert step.end == (Outcome.SUCCEEDED, Reason.SETTLED_BY_SUMMARY)

    def test_a_part_of_the_summaries_is_not_everything(self, many):
        job, sight = running(many)
        step = many.step(job, 60 + LIMIT, sight=sight, summary=summary(complete=False))
        assert step.end == (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT)

    def test_a_job_that_cannot_be_read_may_have_finished_so_it_is_waited_for(self, many):
        job, _ = running(many)
        step = many.step(job, 60 + LIMIT, summary=None)
        assert (step.end, step.tombstones) == ((None, None), ())
        assert step.job.wake_at == many.at(60 + LIMIT + 60), "the next tick looks again"

    @pytest.mark.parametrize(
        ("told", "end"),
        [
            (None, (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT)),
            (summary(), (Outcome.SUCCEEDED, Reason.SETTLED_BY_SUMMARY)),
        ],
    )
    def test_it_is_not_waited_for_longer_than_the_margin(self, many, told, end):
        job, _ = running(many)
        assert many.step(job, 60 + LIMIT + 599, summary=told).end == (None, None)
        assert many.step(job, 60 + LIMIT + 600, summary=told).end == end


class TestWaitingForRoom:
    @pytest.mark.parametrize(
        ("kind", "reason"),
        [(TroubleKind.UNSCHEDULABLE, Reason.UNSCHEDULABLE), (TroubleKind.QUOTA, Reason.QUOTA_BLOCKED)],
    )
    def test_pods_may_wait_as_long_as_there_is_patience_for_capacity(self, many, kind, reason):
        job, sight = pending(many)
        waiting = many.waiting(kind)
        assert many.step(job, CAPACITY - 1, sight=sight, pods=waiting).tombstones == ()
        step = many.step(job, CAPACITY, sight=sight, pods=waiting)
        assert step.end == (Outcome.NO_CAPACITY, reason)
        assert "in their own words" in step.job.detail

    def test_a_job_that_waits_is_looked_at_when_the_patience_ends(self, many):
        job, sight = pending(many)
        after = many.step(job, CAPACITY - 100, sight=sight, pods=many.waiting(TroubleKind.UNSCHEDULABLE)).job
        assert after.wake_at == many.at(CAPACITY)

    def test_waiting_takes_nothing_from_the_runs_own_time(self, many):
        job, sight = pending(many)
        job = many.step(job, 600, sight=sight, pods=many.waiting(TroubleKind.UNSCHEDULABLE)).job
        assert job.deadlines.run is None
        assert job.deadlines.boot == many.at(CAPACITY + 1800)
        ready = PodsSeen(pods=(many.pod(),), scheduled_at=many.at(640), started_at=many.at(700))
        job = many.step(job, 720, sight=sight, pods=ready).job
        assert (job.phase, job.deadlines.run) == (Phase.RUNNING, many.at(700 + LIMIT))

    def test_one_pod_at_work_is_enough_to_go_on(self, many):
        job, sight = running(many)
        pods = many.waiting(TroubleKind.UNSCHEDULABLE, started_at=many.at(50))
        assert many.step(job, CAPACITY + 100, sight=sight, pods=pods, cells=Cells()).tombstones == ()

    def test_a_start_that_only_the_last_look_shows_beats_the_end_of_the_patience(self, many):
        job, sight = pending(many)
        pods = many.waiting(TroubleKind.UNSCHEDULABLE, started_at=many.at(CAPACITY - 5))
        step = many.step(job, CAPACITY, sight=sight, pods=pods)
        assert (step.tombstones, step.job.phase) == ((), Phase.RUNNING)


class TestPodsInTrouble:
    @pytest.mark.parametrize(
        ("kind", "lasts", "reason"),
        [
            (TroubleKind.IMAGE_PULL, 300, Reason.IMAGE_PULL),
            (TroubleKind.CONFIG, 300, Reason.CONFIG_FAULT),
            (TroubleKind.MOUNT, 600, Reason.CONFIG_FAULT),
        ],
    )
    def test_what_does_not_mend_itself_ends_the_run_after_a_while(self, many, kind, lasts, reason):
        job, sight = pending(many)
        trouble = many.waiting(kind, since=30, scheduled_at=many.at(20))
        assert many.step(job, 30 + lasts - 1, sight=sight, pods=trouble).tombstones == ()
        step = many.step(job, 30 + lasts, sight=sight, pods=trouble)
        assert step.end == (Outcome.FAILED, reason)
        assert step.job.detail == "Native: in their own words"

    def test_it_is_looked_at_often_enough_to_be_seen(self, many):
        job, sight = pending(many)
        after = many.step(job, 40, sight=sight, pods=many.waiting(TroubleKind.IMAGE_PULL, since=30)).job
        assert after.wake_at == many.at(40 + 120)


class TestBoot:
    def test_it_counts_from_when_a_pod_has_a_node(self, many):
        job, sight = pending(many)
        pods = PodsSeen(pods=(many.pod(),), scheduled_at=many.at(900))
        job = many.step(job, 950, sight=sight, pods=pods).job
        assert job.deadlines.boot == many.at(900 + 1800)
        assert many.step(job, 900 + 1799, sight=sight, pods=pods).tombstones == ()
        step = many.step(job, 900 + 1800, sight=sight, pods=pods, summary=None)
        assert step.end == (Outcome.FAILED, Reason.BOOT_TIMEOUT)

    def test_pods_that_are_moved_from_node_to_node_cannot_put_it_off_for_ever(self, many):
        job, sight = pending(many)
        late = PodsSeen(pods=(many.pod(),), scheduled_at=many.at(CAPACITY + 500))
        assert many.step(job, CAPACITY + 600, sight=sight, pods=late).job.deadlines.boot == many.at(
            CAPACITY + 1800
        )

    def test_pods_that_lost_their_node_wait_for_room_again(self, many):
        job, sight = booting(many)
        step = many.step(job, 1800, sight=sight, pods=many.waiting(TroubleKind.UNSCHEDULABLE), summary=None)
        assert (step.tombstones, step.job.deadlines.boot) == ((), many.at(CAPACITY + 1800))

    def test_a_container_that_runs_in_silence_has_started(self, many):
        """A plain task writes no marker, and a marker may not have come through."""
        job, sight = booting(many)
        ready = PodsSeen(pods=(many.pod(),), scheduled_at=many.at(0), started_at=many.at(1750))
        step = many.step(job, 1800, sight=sight, pods=ready, summary=None)
        assert (step.tombstones, step.job.phase) == ((), Phase.RUNNING)
        assert step.job.started_at == many.at(1750)

    @pytest.mark.parametrize("unread", ["sight", "pods"])
    def test_silence_is_not_taken_from_what_could_not_be_read(self, many, unread):
        job, sight = booting(many)
        there = {"sight": sight, "pods": PodsSeen(scheduled_at=many.at(0)), "summary": None}
        del there[unread]
        step = many.step(job, 1800, **there)
        assert (step.tombstones, step.job.wake_at) == ((), many.at(1800 + 60))
        assert many.step(job, 1800 + 600, **there).end == (Outcome.FAILED, Reason.BOOT_TIMEOUT)

    def test_an_event_asks_for_pods_too_before_it_gives_a_job_up(self, many):
        job, sight = booting(many)
        step = many.step(job, 1800, thorough=False, sight=sight, pods=PodsSeen(started_at=many.at(1790)))
        assert (step.tombstones, step.job.phase) == ((), Phase.RUNNING)


class TestDeleted:
    @pytest.mark.parametrize(
        "phase", [pytest.param("running", id="acceptance-Z14"), pytest.param("pending", id="no pod yet")]
    )
    def test_it_is_settled_at_the_second_look(self, many, phase):
        job, _ = (pending if phase == "pending" else running)(many)
        first = many.step(job, 100, sight=Absent())
        assert (first.job.outcome, first.job.wake_at) == (None, many.at(115))
        early = many.step(first.job, 114, sight=Absent(), summary=None, pods=PodsSeen())
        assert early.job.outcome is None
        step = many.step(first.job, 115, sight=Absent(), summary=None, pods=PodsSeen())
        assert step.end == (Outcome.FAILED, Reason.JOB_DELETED)

    def test_one_that_was_seen_again_was_not_gone(self, many):
        job, sight = running(many)
        first = many.step(job, 100, sight=Absent()).job
        back = many.step(first, 115, sight=sight, cells=Cells()).job
        assert back.resources[0].missing_since is None
        assert many.step(back, 700, sight=Absent()).job.outcome is None

    def test_workers_that_had_delivered_everything_have_the_last_word(self, many):
        job = many.running(row=many.row(missing_since=many.at(100)))
        step = many.step(job, 115, sight=Absent(), summary=summary(n_ok=7, n_error=1))
        assert step.end == (Outcome.PARTIAL, Reason.SETTLED_BY_SUMMARY)

    def test_summaries_that_cannot_be_read_are_waited_for(self, many):
        job = many.running(row=many.row(missing_since=many.at(100)))
        step = many.step(job, 115, sight=Absent())
        assert (step.tombstones, step.job.wake_at) == ((), many.at(115)), "the next tick looks again"

    def test_a_task_has_no_summaries_to_wait_for(self, many):
        job = many.running(plan=many.plan(kind=SubmitKind.TASK), row=many.row(missing_since=many.at(100)))
        step = many.step(job, 115, sight=Absent())
        assert step.end == (Outcome.FAILED, Reason.JOB_DELETED)
        assert LookKind.SUMMARY not in step.asked

    def test_a_job_of_the_same_name_in_its_place_means_that_it_is_gone(self, many):
        job, _ = running(many)
        row = job.resources[0]
        other = replace(many.finished(row, WorkersVerdict.SUCCEEDED), uid="uid-2")
        first = many.step(job, 100, sight=other, summary=summary())
        assert (first.job.outcome, first.job.resources[0].uid) == (None, None)
        step = many.step(first.job, 115, sight=other, summary=None, pods=PodsSeen())
        assert step.end == (Outcome.FAILED, Reason.JOB_DELETED)

    def test_one_that_is_going_is_looked_at_each_tick_until_it_is_gone(self, many):
        """A foreground deletion waits for the pods, and a finalizer for whoever set it."""
        job, _ = running(many)
        going = many.sight(job.resources[0], LiveState.ENDING)
        job = many.step(job, 100, sight=going, cells=Cells()).job
        later = many.step(job, 400, sight=going, cells=Cells())
        assert (later.job.outcome, later.job.wake_at) == (None, many.at(400))
        assert later.decision.effects == (), "only its own end makes it ours to remove"
        step = many.step(later.job, 460, sight=Absent(), summary=None)
        assert step.end == (Outcome.FAILED, Reason.JOB_DELETED)

    def test_one_that_is_going_for_ever_still_times_out(self, many):
        job, _ = running(many)
        going = many.sight(job.resources[0], LiveState.ENDING)
        assert many.step(job, 60 + LIMIT, sight=going, summary=None).end[1] is Reason.RUN_TIMEOUT


class TestStall:
    def test_no_new_cell_for_the_grace_although_the_job_is_there(self, many):
        job, sight = running(many)
        there = {"sight": sight, "cells": Cells(count=3, last_at=many.at(300)), "summary": None}
        assert many.step(job, 2999, **there).tombstones == ()
        assert many.step(job, 3000, **there).end == (Outcome.FAILED, Reason.STALLED)

    @pytest.mark.parametrize("unread", ["sight", "cells", "summary"])
    def test_what_could_not_be_read_is_no_proof_of_it(self, many, unread):
        job, sight = running(many)
        there = {"sight": sight, "cells": Cells(count=3, last_at=many.at(300)), "summary": None}
        del there[unread]
        assert many.step(job, 3000, **there).tombstones == ()

    def test_workers_that_had_delivered_everything_did_not_stall(self, many):
        job, sight = running(many)
        step = many.step(job, 3000, sight=sight, cells=Cells(), summary=summary())
        assert step.end == (Outcome.SUCCEEDED, Reason.SETTLED_BY_SUMMARY)


@pytest.mark.parametrize("at", [100, 3000])
def test_a_run_that_gets_on_is_left_alone(many, at):
    job, sight = running(many)
    step = many.step(
        job, at, sight=sight, markers=started(many), cells=Cells(count=9, last_at=many.at(at - 5))
    )
    assert (step.job.outcome, step.decision.effects, step.tombstones) == (None, (), ())
    assert step.asked == (LookKind.MARKERS, LookKind.SIGHT, LookKind.CELLS)


def test_an_ending_removes_the_job_at_once(many):
    job, sight = running(many, cancel_requested=True)
    settled = many.step(job, 100, sight=sight).job
    assert many.step(settled, 100, sight=sight).decision.effects[-1] == SendDelete(job.resources[0].nonce)

"""Whose the Job is that has the row's name: taken only for what its own create made, and removed only where it is ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.decide import (
    KeepLogs,
    LookKind,
    SendCreate,
    SendDelete,
    SendDeleteRemains,
    record_create,
    record_delete,
)
from runtender.model import Outcome, Phase, Reason, ResourceState, SubmitKind, Summary
from runtender.observed import (
    Absent,
    Accepted,
    DeleteAnswer,
    LiveState,
    MarkerPair,
    NameTaken,
    PodsSeen,
    Unclear,
    WorkersVerdict,
)

DONE, FAILED = WorkersVerdict.SUCCEEDED, WorkersVerdict.FAILED
WHOLE = Summary(n_cells=8, n_ok=8, n_error=0, complete=True)
KINDS = [SubmitKind.FORECAST, SubmitKind.TASK]


def intended(many, *, kind=SubmitKind.FORECAST, **row):
    """A create was sent, and its holder was not heard of again."""
    return many.job(phase=Phase.PROVISIONING, plan=many.plan(kind=kind), resources=(many.unanswered(**row),))


def held(many, **row):
    return intended(many, token="other", until=many.at(90), **row)


def strangers(sight):
    """The same Job as somebody else's: of no plane, another plane, another attempt."""
    return {
        "somebody's": replace(sight, nonce="", key="", plane=""),
        "another plane's": replace(sight, plane="staging"),
        "another attempt's": replace(sight, nonce="f" * 16, key="e" * 16),
    }


class TestHeld:
    @pytest.mark.parametrize("stage", ["nothing", "started"])
    def test_whoever_holds_the_create_is_left_to_it(self, many, stage):
        job = held(many)
        pair = MarkerPair(started=many.started(20)) if stage == "started" else MarkerPair()
        step = many.step(job, 30, markers=pair, sight=Absent())
        assert step.asked == (LookKind.MARKERS,)
        assert (step.decision.effects, step.job.wake_at) == ((), many.at(90))

    def test_a_cancel_decides_at_once_and_removes_when_the_hold_is_over(self, many):
        job = replace(held(many), cancel_requested=True)
        step = many.step(job, 30)
        assert step.end == (Outcome.CANCELLED, Reason.CANCELLED)
        assert step.tombstones
        assert many.step(step.job, 30, sight=Absent()).asked == ()
        assert step.job.wake_at == many.at(90)

    def test_an_answer_that_comes_after_the_end_is_removed(self, many):
        settled = many.step(replace(held(many), cancel_requested=True), 30).job
        after = record_create(settled, settled.resources[0].nonce, Accepted(target_id="uid-1"), many.ctx(40))
        assert after.resources[0].state is ResourceState.DELETING
        step = many.step(after, 41, sight=many.sight(after.resources[0]))
        assert SendDelete(after.resources[0].nonce) in step.decision.effects


class TestUnanswered:
    def test_the_create_is_sent_again_while_nothing_is_there(self, many):
        job = intended(many)
        step = many.step(job, 100, sight=Absent())
        assert step.decision.effects == (SendCreate(job.resources[0].nonce),)

    def test_what_it_made_is_taken_over(self, many):
        job = intended(many)
        row = many.step(job, 100, sight=many.sight(job.resources[0])).job.resources[0]
        assert (row.state, row.uid, row.target_id) == (ResourceState.CREATED, "uid-1", "uid-1")

    def test_after_a_while_it_is_forbidden_and_given_up(self, many):
        job = intended(many)
        step = many.step(job, 600, sight=Absent())
        assert [tombstone.reason for tombstone in step.tombstones] == [None]
        assert step.job.resources[0].state is ResourceState.DELETING
        assert step.job.outcome is None

    def test_what_cannot_be_read_is_neither_there_nor_gone(self, many):
        step = many.step(intended(many), 100)
        assert (step.decision.effects, step.job.wake_at) == ((), many.at(160))

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("verdict", [DONE, FAILED])
    def test_one_that_has_finished_already_is_settled_by_its_status(self, many, kind, verdict):
        job = intended(many, kind=kind)
        sight = many.finished(job.resources[0], verdict)
        step = many.step(job, 100, sight=sight, summary=WHOLE, pods=PodsSeen())
        assert step.job.outcome is (Outcome.SUCCEEDED if verdict is DONE else Outcome.FAILED)

    def test_a_finished_one_beats_a_cancel(self, many):
        job = replace(intended(many), cancel_requested=True)
        step = many.step(job, 100, sight=many.finished(job.resources[0], DONE), summary=WHOLE)
        assert (step.end, step.tombstones) == ((Outcome.SUCCEEDED, Reason.COMPLETED), ())

    def test_a_finished_one_waits_for_its_summaries(self, many):
        job = intended(many)
        step = many.step(job, 100, sight=many.finished(job.resources[0], DONE))
        assert (step.job.outcome, step.job.wake_at) == (None, many.at(160))

    @pytest.mark.parametrize("kind", KINDS)
    def test_workers_that_were_forbidden_to_start_have_achieved_nothing(self, many, kind):
        """They exit 0 at once, so that their Job looks as if all had gone well."""
        job = intended(many, kind=kind)
        sight = many.finished(job.resources[0], DONE)
        forbidden = many.ended(many.tombstone(None), started_at=None)
        step = many.step(job, 700, markers=forbidden, sight=sight, summary=None, remains=())
        assert step.job.outcome is None
        assert step.job.resources[0].state is ResourceState.DELETING
        again = many.step(step.job, 700, markers=forbidden, sight=sight, summary=None, remains=())
        assert again.job.outcome is None
        assert SendDelete(job.resources[0].nonce) in again.decision.effects


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verdict", [DONE, FAILED])
def test_a_placement_that_was_given_up_is_not_settled_by_what_became_of_it(many, kind, verdict):
    """Another copy of its create was refused for want of room, and this one had come through."""
    job = intended(many, kind=kind, state=ResourceState.DELETING, sent_at=many.at(10))
    sight = many.finished(job.resources[0], verdict)
    step = many.step(job, 100, sight=sight, summary=WHOLE, pods=PodsSeen())
    assert [tombstone.reason for tombstone in step.tombstones] == [None]
    assert step.job.outcome is None
    assert SendDelete(job.resources[0].nonce) in step.decision.effects


class TestNameTaken:
    """The create was refused because something has the name."""

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("whose", ["somebody's", "another plane's", "another attempt's"])
    @pytest.mark.parametrize(
        "verdict",
        [pytest.param(DONE, id="acceptance-Z13"), FAILED, WorkersVerdict.RUNNING],
    )
    def test_a_strangers_job_is_never_taken_for_this_runs(self, many, kind, whose, verdict):
        job = intended(many, kind=kind, refused=True)
        sight = strangers(many.finished(job.resources[0], verdict))[whose]
        step = many.step(job, 100, sight=sight, summary=WHOLE, pods=PodsSeen())
        assert step.end == (Outcome.FAILED, Reason.CONFIG_FAULT)
        assert "belongs to somebody else (id uid-1)" in step.job.detail
        rest = many.step(step.job, 100, sight=sight)
        assert (rest.job.phase, rest.decision.effects) == (Phase.DONE, ()), "and is left alone"

    @pytest.mark.parametrize("verdict", [DONE, WorkersVerdict.RUNNING])
    @pytest.mark.parametrize("refused", [True, False], ids=["refused", "sent twice"])
    def test_an_older_placements_job_is_removed_by_its_own_uid_and_the_place_tried_again(
        self, many, verdict, refused
    ):
        job = intended(many, try_number=1, refused=refused)
        row = job.resources[0]
        older = replace(many.finished(row, verdict), nonce=many.row().nonce, uid="uid-0")
        step = many.step(job, 100, sight=older, summary=WHOLE)
        assert (step.job.outcome, step.job.resources[0].state) == (None, ResourceState.DELETING)
        removing = many.step(step.job, 100, markers=_forbidden(many, refused), sight=older, summary=WHOLE)
        assert SendDelete(row.nonce) in removing.decision.effects
        assert removing.job.resources[0].target_id == "uid-0", "the delete names what is there"
        sent = record_delete(removing.job, row.nonce, DeleteAnswer(accepted=True), many.ctx(101))
        step = many.step(sent, 500, markers=_forbidden(many, refused), sight=Absent(), remains=())
        assert step.decision.effects == (SendCreate(step.job.resources[-1].nonce),)
        assert step.job.resources[-1].try_number == 2

    def test_a_repeat_that_meets_its_own_first_copy_is_no_refusal(self, many):
        job = held(many, sent_at=many.at(10))
        after = record_create(job, job.resources[0].nonce, NameTaken(), many.ctx(12))
        assert not after.resources[0].refused
        assert many.step(after, 12, sight=many.sight(after.resources[0])).job.resources[0].uid == "uid-1"

    def test_a_name_that_is_free_again_is_tried_again(self, many):
        job = intended(many, refused=True)
        step = many.step(job, 100, sight=Absent())
        assert step.decision.effects == (SendCreate(step.job.resources[-1].nonce),)


def _forbidden(many, refused):
    return MarkerPair() if refused else many.ended(many.tombstone(None), started_at=None)


class TestAccepted:
    def test_a_create_whose_answer_named_no_uid_is_known_by_its_nonce(self, many):
        job = many.running(row=many.row(target_id=None))
        row = job.resources[0]
        other = replace(many.finished(row, DONE), nonce="f" * 16, uid="uid-2")
        assert many.step(job, 100, sight=other, summary=WHOLE).job.outcome is None
        assert many.step(job, 100, sight=many.finished(row, DONE), summary=WHOLE).job.outcome

    def test_an_answer_that_never_came_leaves_the_row_to_be_looked_up(self, many):
        job = held(many)
        after = record_create(job, job.resources[0].nonce, Unclear(detail="HTTP 503"), many.ctx(5))
        assert (after.resources[0].state, after.wake_at) == (ResourceState.INTENDED, many.at(20))

    def test_it_is_looked_at_again_although_its_handler_ended_right_after(self, many):
        job = held(many)
        after = record_create(job, job.resources[0].nonce, Accepted(target_id="uid-1"), many.ctx(5))
        assert after.wake_at == many.at(125)


class TestTeardown:
    def stopping(self, many, outcome=Outcome.FAILED, **row):
        job = many.running(row=many.row(**{"state": ResourceState.DELETING, **row}))
        return replace(job, phase=Phase.STOPPING, outcome=outcome, reason=Reason.FAILED_INDEXES)

    def test_what_pods_said_is_kept_before_they_go(self, many):
        job = self.stopping(many)
        nonce = job.resources[0].nonce
        step = many.step(job, 100, sight=many.finished(job.resources[0], FAILED))
        assert step.decision.effects == (KeepLogs(nonce), SendDelete(nonce))

    def test_workers_that_did_well_have_nothing_to_say(self, many):
        job = self.stopping(many, Outcome.SUCCEEDED)
        step = many.step(job, 100, sight=many.finished(job.resources[0], DONE))
        assert step.decision.effects == (SendDelete(job.resources[0].nonce),)

    def test_a_job_whose_pods_are_still_there_is_not_gone(self, many):
        job = self.stopping(many, delete_sent_at=many.at(100))
        nonce = job.resources[0].nonce
        pods = {"sight": Absent(), "remains": ("pods",)}
        assert many.step(job, 110, **pods).decision.effects == (), "they are going"
        step = many.step(job, 160, **pods)
        assert (step.job.phase, step.decision.effects) == (Phase.STOPPING, (SendDeleteRemains(nonce),))
        assert many.step(job, 160, sight=Absent()).job.phase is Phase.STOPPING, (
            "unread pods are not gone either"
        )
        assert many.step(job, 160, sight=Absent(), remains=()).job.phase is Phase.DONE

    def test_one_that_is_going_is_waited_for(self, many):
        """Finalizers, or a deletion that takes the pods along first."""
        job = self.stopping(many, delete_sent_at=many.at(100))
        step = many.step(job, 400, sight=many.sight(job.resources[0], LiveState.ENDING))
        assert (step.job.phase, step.decision.effects) == (Phase.STOPPING, ())

    def test_a_cluster_that_does_not_answer_keeps_it_from_coming_to_rest(self, many):
        step = many.step(self.stopping(many), 400)
        assert (step.job.phase, step.decision.effects) == (Phase.STOPPING, ())
        assert step.job.wake_at <= many.at(400 + 660)

    @pytest.mark.parametrize("whose", ["somebody's", "another plane's"])
    def test_a_strangers_job_in_its_place_is_left_alone_but_its_own_pods_are_not(self, many, whose):
        job = self.stopping(many, delete_sent_at=many.at(0))
        sight = strangers(many.sight(job.resources[0], uid="uid-2"))[whose]
        nonce = job.resources[0].nonce
        assert many.step(job, 100, sight=sight, remains=("pods",)).decision.effects == (
            SendDeleteRemains(nonce),
        )
        assert many.step(job, 100, sight=sight, remains=()).job.phase is Phase.DONE

    def test_a_late_copy_of_the_same_create_is_removed_by_its_own_uid(self, many):
        job = self.stopping(many, delete_sent_at=many.at(0))
        step = many.step(job, 100, sight=many.sight(job.resources[0], uid="uid-2"))
        assert SendDelete(job.resources[0].nonce) in step.decision.effects
        assert step.job.resources[0].target_id == "uid-2"

    def test_a_create_that_was_never_answered_may_land_until_its_grace_is_over(self, many):
        job = self.stopping(many, target_id=None, created_at=None, confirmed_at=None, sent_at=many.at(50))
        nonce = job.resources[0].nonce
        absent = {"sight": Absent(), "remains": ()}
        first = many.step(job, 60, **absent)
        assert first.decision.effects == (SendDelete(nonce),), "blindly, by its label"
        sent = record_delete(first.job, nonce, DeleteAnswer(accepted=True), many.ctx(60))
        assert many.step(sent, 50 + 50 + 179, **absent).job.phase is Phase.STOPPING
        assert many.step(sent, 50 + 50 + 180, **absent).job.phase is Phase.DONE

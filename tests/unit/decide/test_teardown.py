"""Teardown ends only when everything was seen gone, and never touches a stranger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.decide import Look, LookKind, SendDelete, SendDeleteRemains, decide, record_delete, wanted
from runtender.model import CleanupState, Outcome, Phase, Reason, ResourceState
from runtender.observed import Absent, DeleteAnswer, LiveState, OperationSeen, Seen


def stopping(a, **row):
    job = a.running(row=a.row(state=ResourceState.DELETING, **row))
    return replace(job, phase=Phase.STOPPING, outcome=Outcome.SUCCEEDED, reason=Reason.COMPLETED)


def seen(job, sight, **changes):
    return Seen(sights={job.resources[0].nonce: sight}, **changes)


def test_a_machine_that_is_there_is_deleted(a):
    job = stopping(a)
    decision = decide(job, seen(job, a.sight(job.resources[0])), a.ctx(100))
    assert decision.effects == (SendDelete(job.resources[0].nonce),)


def test_what_was_not_seen_is_not_touched(a):
    assert decide(stopping(a), Seen(), a.ctx(100)).effects == ()


@pytest.mark.parametrize("change", [{"key": ""}, {"plane": "staging"}, {"key": "f" * 16}])
def test_a_strangers_machine_of_our_name_is_never_deleted(a, change):
    job = stopping(a)
    stranger = replace(a.sight(job.resources[0]), nonce="", **change)
    decision = decide(job, seen(job, stranger), a.ctx(100))
    assert decision.effects == ()


def test_it_rests_only_when_machine_and_disk_are_gone(a):
    job = stopping(a, delete_sent_at=a.at(0))
    nonce = job.resources[0].nonce
    disk_there = decide(job, seen(job, Absent(), remains={nonce: ("disk",)}), a.ctx(100))
    assert disk_there.effects == (SendDeleteRemains(nonce),)
    assert disk_there.job.phase is Phase.STOPPING
    disk_unread = decide(job, seen(job, Absent()), a.ctx(100))
    assert disk_unread.job.phase is Phase.STOPPING
    gone = decide(job, seen(job, Absent(), remains={nonce: ()}), a.ctx(100)).job
    assert (gone.phase, gone.cleanup.state, gone.wake_at) == (Phase.DONE, CleanupState.DONE, None)


def test_an_open_insert_can_still_land(a):
    job = stopping(a, operation="op", delete_sent_at=a.at(90))
    nonce = job.resources[0].nonce
    pending = seen(job, Absent(), remains={nonce: ()}, operations={nonce: OperationSeen(done=False)})
    assert decide(job, pending, a.ctx(500)).job.phase is Phase.STOPPING
    done = replace(pending, operations={nonce: OperationSeen(done=True)})
    assert decide(job, done, a.ctx(500)).job.phase is Phase.DONE


def test_an_unanswered_create_is_gone_only_after_delete_and_grace(a):
    job = stopping(a, created_at=None, confirmed_at=None, target_id=None, sent_at=a.at(50))
    nonce = job.resources[0].nonce
    absent = seen(job, Absent(), remains={nonce: ()})
    first = decide(job, absent, a.ctx(60))
    assert first.effects == (SendDelete(nonce),)
    deleted = record_delete(first.job, nonce, DeleteAnswer(gone=True), a.ctx(60))
    assert decide(deleted, absent, a.ctx(50 + 50 + 179)).job.phase is Phase.STOPPING
    assert decide(deleted, absent, a.ctx(50 + 50 + 180)).job.phase is Phase.DONE


def test_a_stranger_at_the_name_does_not_hide_the_disk_that_was_left(a):
    job = stopping(a, delete_sent_at=a.at(0))
    nonce = job.resources[0].nonce
    stranger = replace(a.sight(job.resources[0]), nonce="", key="", plane="")
    assert wanted(job, seen(job, stranger), a.ctx(100)) == (Look(LookKind.REMAINS, nonce),)
    assert decide(job, seen(job, stranger), a.ctx(100)).job.phase is Phase.STOPPING
    disk_there = decide(job, seen(job, stranger, remains={nonce: ("disk",)}), a.ctx(100))
    assert disk_there.effects == (SendDeleteRemains(nonce),)
    assert decide(job, seen(job, stranger, remains={nonce: ()}), a.ctx(100)).job.phase is Phase.DONE


def test_a_stranger_at_the_name_of_an_unanswered_create_is_waited_past_and_never_deleted(a):
    job = stopping(a, created_at=None, confirmed_at=None, target_id=None, sent_at=a.at(50))
    stranger = replace(a.sight(job.resources[0]), nonce="", key="", plane="")
    there = seen(job, stranger, remains={job.resources[0].nonce: ()})
    assert decide(job, there, a.ctx(60)).effects == ()
    assert decide(job, there, a.ctx(60)).job.phase is Phase.STOPPING
    late = decide(job, there, a.ctx(50 + 50 + 180))
    assert (late.effects, late.job.phase) == ((), Phase.DONE)


def test_a_machine_that_is_going_is_waited_for(a):
    job = stopping(a)
    decision = decide(job, seen(job, a.sight(job.resources[0], LiveState.ENDING)), a.ctx(100))
    assert decision.effects == ()


def test_an_accepted_delete_is_given_time_then_repeated(a):
    job = stopping(a, delete_sent_at=a.at(100))
    there = seen(job, a.sight(job.resources[0]))
    assert decide(job, there, a.ctx(110)).effects == ()
    assert decide(job, there, a.ctx(140)).effects != ()


def test_refused_deletes_are_counted_told_and_slowed_but_never_given_up(a):
    job = stopping(a)
    nonce, wakes = job.resources[0].nonce, []
    for n in range(5):
        at = 100 + 1000 * n
        job = record_delete(job, nonce, DeleteAnswer(detail="403: may not delete"), a.ctx(at))
        wakes.append((job.wake_at - a.at(at)).total_seconds())
    assert (job.cleanup.state, job.cleanup.tries) == (CleanupState.STUCK, 5)
    assert "may not delete" in job.cleanup.reason
    assert wakes == [120, 240, 480, 600, 600]
    assert job.outcome is Outcome.SUCCEEDED
    assert decide(job, seen(job, a.sight(job.resources[0])), a.ctx(9000)).effects == (SendDelete(nonce),)
    gone = decide(job, seen(job, Absent(), remains={nonce: ()}), a.ctx(9000)).job
    assert (gone.phase, gone.cleanup.state) == (Phase.DONE, CleanupState.DONE)


def test_a_row_somebody_else_holds_is_not_touched(a):
    row = {"created_at": None, "token": "other", "until": a.at(200)}
    job = replace(stopping(a, **row), resources=(a.row(state=ResourceState.INTENDED, **row),))
    assert wanted(job, Seen(), a.ctx(100)) == ()
    assert decide(job, Seen(), a.ctx(100)).effects == ()
    assert decide(job, Seen(), a.ctx(100)).job.wake_at == a.at(200)


def test_a_job_at_rest_stays_at_rest(a):
    job = replace(stopping(a), phase=Phase.DONE, wake_at=None, resources=())
    assert wanted(job, Seen(), a.ctx(9999)) == ()
    assert decide(job, Seen(), a.ctx(9999)).job == job


def test_a_delete_that_is_taken_at_last_is_looked_after_soon_however_often_it_was_refused(a):
    job = stopping(a)
    nonce = job.resources[0].nonce
    for n in range(5):
        job = record_delete(job, nonce, DeleteAnswer(detail="403: may not delete"), a.ctx(100 + 1000 * n))
    job = record_delete(job, nonce, DeleteAnswer(accepted=True), a.ctx(6000))
    assert job.wake_at == a.at(6060)
    going = decide(job, seen(job, a.sight(job.resources[0], LiveState.ENDING)), a.ctx(6060)).job
    assert going.wake_at == a.at(6120)

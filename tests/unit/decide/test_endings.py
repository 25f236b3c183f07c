"""Ends that no marker gives: each goes through the terminal object first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.decide import LookKind, Tombstone, decide, wanted
from runtender.model import Cells, Outcome, Reason, ResourceState, Summary
from runtender.observed import Absent, Fate, LiveState, MarkerPair, Seen


def looking(job, seen, ctx):
    """Return what is looked at when nothing more is found than `seen`."""
    return [look.kind for look in wanted(job, seen, ctx)]


def quiet(a, row, **changes):
    """A started worker without a terminal marker."""
    return Seen(markers={row.nonce: MarkerPair(started=a.started())}, **changes)


def test_cancel_writes_the_tombstone_before_it_is_saved(a):
    job = a.running(cancel_requested=True)
    row = job.resources[0]
    decision = decide(job, quiet(a, row, serials={row.nonce: None}), a.ctx(100))
    assert decision.tombstones == (
        Tombstone(nonce=row.nonce, reason=Reason.CANCELLED, detail="cancelled on request"),
    )
    assert decision.job == job, "nothing is saved before the arbiter has spoken"


def test_a_worker_that_was_faster_than_the_cancel_has_the_last_word(a):
    job = a.running(cancel_requested=True)
    row = job.resources[0]
    seen = Seen(markers={row.nonce: a.ended(a.marker())}, summaries={row.nonce: None})
    assert decide(job, seen, a.ctx(100)).job.outcome is Outcome.SUCCEEDED


def test_words_on_the_serial_console_are_stored_for_the_worker(a):
    job = a.running(cancel_requested=True)
    row = job.resources[0]
    decision = decide(job, quiet(a, row, serials={row.nonce: b'{"status":"SUCCEEDED"}'}), a.ctx(100))
    assert [tombstone.words for tombstone in decision.tombstones] == [b'{"status":"SUCCEEDED"}']


def test_cancel_before_anything_exists_needs_no_tombstone(a):
    decision = decide(a.job(cancel_requested=True), Seen(), a.ctx(1))
    assert decision.job.outcome is Outcome.CANCELLED
    assert decision.tombstones == ()


def test_an_unreadable_terminal_object_is_no_word_of_the_worker(a):
    job = a.running(cancel_requested=True)
    row = job.resources[0]
    spoilt = MarkerPair(started=a.started(), terminal=None, terminal_stored=True)
    decision = decide(job, Seen(markers={row.nonce: spoilt}, serials={row.nonce: None}), a.ctx(100))
    assert decision.tombstones[0].reason is Reason.CANCELLED


def test_a_run_longer_than_its_limit_times_out(a):
    job = a.running()
    row = job.resources[0]
    seen = quiet(a, row, serials={row.nonce: None})
    assert decide(job, seen, a.ctx(60 + 3600)).tombstones[0].reason is Reason.RUN_TIMEOUT
    assert decide(job, seen, a.ctx(60 + 3599)).tombstones == ()


def test_a_finished_run_never_times_out(a):
    job = a.running()
    row = job.resources[0]
    seen = Seen(markers={row.nonce: a.ended(a.marker(at=3000))}, summaries={row.nonce: None})
    assert decide(job, seen, a.ctx(999999)).job.outcome is Outcome.SUCCEEDED


def test_a_silent_worker_is_given_up_at_the_boot_deadline(a):
    job = a.provisioning()
    row = job.resources[0]
    seen = Seen(markers={row.nonce: MarkerPair()}, serials={row.nonce: None})
    assert decide(job, seen, a.ctx(1800)).tombstones[0].reason is Reason.BOOT_TIMEOUT


def test_an_unread_console_is_no_proof_of_silence_at_first(a):
    job = a.provisioning()
    row = job.resources[0]
    unread = Seen(markers={row.nonce: MarkerPair()})
    assert decide(job, unread, a.ctx(1900)).tombstones == ()
    assert decide(job, unread, a.ctx(1800 + 600)).tombstones[0].reason is Reason.BOOT_TIMEOUT


class TestStall:
    def test_no_new_cell_for_the_grace_is_a_stall(self, a):
        job = a.running()
        row = job.resources[0]
        seen = quiet(
            a, row, sights={row.nonce: a.sight(row)}, cells=Cells(count=0), summaries={row.nonce: None}
        )
        assert decide(job, seen, a.ctx(60 + 2700)).tombstones[0].reason is Reason.STALLED
        assert decide(job, seen, a.ctx(60 + 2699)).tombstones == ()

    def test_a_silent_worker_is_asked_for_what_it_left_before_it_is_called_stalled(self, a):
        job = a.running()
        row = job.resources[0]
        seen = quiet(a, row, sights={row.nonce: a.sight(row)}, cells=Cells(count=0))
        assert set(looking(job, seen, a.ctx(2760))) == {LookKind.SERIAL, LookKind.SUMMARY}
        assert decide(job, seen, a.ctx(2760)).tombstones == (), "an unread summary is no proof of a stall"

    @pytest.mark.parametrize("at", [2760, 3700], ids=["stalled", "past its limit"])
    def test_one_that_had_delivered_everything_is_settled_by_its_summary(self, a, at):
        job = a.running()
        row = job.resources[0]
        summary = Summary(n_cells=4, n_ok=4, n_error=0, complete=True)
        seen = quiet(
            a,
            row,
            sights={row.nonce: a.sight(row)},
            cells=Cells(count=0),
            summaries={row.nonce: summary},
            serials={row.nonce: None},
        )
        assert decide(job, seen, a.ctx(at)).tombstones[0].reason is Reason.SETTLED_BY_SUMMARY

    def test_a_cell_restarts_the_grace(self, a):
        job = a.running()
        row = job.resources[0]
        seen = quiet(a, row, sights={row.nonce: a.sight(row)}, cells=Cells(count=1, last_at=a.at(2000)))
        assert decide(job, seen, a.ctx(2800)).tombstones == ()

    @pytest.mark.parametrize("unread", ["cells", "sights"])
    def test_what_was_not_seen_is_no_stall(self, a, unread):
        job = a.running()
        row = job.resources[0]
        seen = quiet(a, row, sights={row.nonce: a.sight(row)}, cells=Cells())
        blind = replace(seen, **{unread: None if unread == "cells" else {}})
        assert decide(job, blind, a.ctx(3000)).tombstones == ()


class TestLost:
    def test_one_absence_is_not_enough(self, a):
        job = a.running()
        row = job.resources[0]
        decision = decide(job, quiet(a, row, sights={row.nonce: Absent()}), a.ctx(100))
        assert decision.job.resources[0].missing_since == a.at(100)
        assert decision.job.outcome is None
        assert decision.job.wake_at == a.at(115)

    def test_a_worker_that_comes_back_into_sight_was_never_lost(self, a):
        row = a.row(missing_since=a.at(100))
        decision = decide(a.running(row=row), quiet(a, row, sights={row.nonce: a.sight(row)}), a.ctx(120))
        assert decision.job.resources[0].missing_since is None

    @pytest.mark.parametrize(
        ("summary", "fate", "reason"),
        [
            (Summary(n_cells=4, n_ok=4, n_error=0, complete=True), Fate(), Reason.SETTLED_BY_SUMMARY),
            (Summary(n_cells=4, n_ok=4, n_error=0, complete=False), Fate(), Reason.WORKER_LOST),
            (None, Fate(reason=Reason.PREEMPTED), Reason.PREEMPTED),
            (None, Fate(reason=Reason.HOST_ERROR), Reason.HOST_ERROR),
            (None, Fate(reason=Reason.TTL_EXPIRED), Reason.TTL_EXPIRED),
            (None, Fate(deleted=True), Reason.WORKER_LOST),
        ],
        ids=["complete summary", "half a summary", "preempted", "host error", "ttl", "deleted by a stranger"],
    )
    def test_a_vanished_worker_is_settled_by_what_it_left(self, a, summary, fate, reason):
        row = a.row(missing_since=a.at(100))
        seen = quiet(
            a,
            row,
            sights={row.nonce: Absent()},
            summaries={row.nonce: summary},
            fates={row.nonce: fate},
        )
        assert decide(a.running(row=row), seen, a.ctx(115)).tombstones[0].reason is reason

    def test_the_platforms_records_must_have_been_read(self, a):
        row = a.row(missing_since=a.at(100))
        seen = quiet(a, row, sights={row.nonce: Absent()}, summaries={row.nonce: None})
        assert decide(a.running(row=row), seen, a.ctx(115)).tombstones == ()

    def test_an_ended_machine_still_has_a_console_to_read(self, a):
        row = a.row(missing_since=a.at(100))
        job = a.running(row=row)
        seen = quiet(a, row, sights={row.nonce: a.sight(row, LiveState.ENDED)})
        assert set(looking(job, seen, a.ctx(115))) == {LookKind.FATE, LookKind.SUMMARY, LookKind.SERIAL}


class TestStoppedAtOnce:
    def seen(self, a, row, fate=None, **changes):
        sight = a.sight(row, LiveState.ENDING, **changes)
        fates = {} if fate is None else {row.nonce: fate}
        return Seen(markers={row.nonce: MarkerPair()}, sights={row.nonce: sight}, fates=fates)

    def test_a_machine_stopping_within_a_minute_without_a_word_is_a_stock_out(self, a):
        job = a.provisioning()
        row = job.resources[0]
        first = decide(job, self.seen(a, row, Fate()), a.ctx(40))
        assert [t.reason for t in first.tombstones] == [None], "the placement is disarmed first"
        pair = MarkerPair(terminal=a.tombstone(None), terminal_stored=True)
        after = decide(job, replace(self.seen(a, row, Fate()), markers={row.nonce: pair}), a.ctx(40)).job
        assert after.outcome is None
        assert [entry.code for entry in after.walk.ledger] == ["STOPPED_AT_ONCE"]
        assert after.resources[0].state is ResourceState.DELETING

    def test_one_that_somebody_deleted_is_none(self, a):
        job = a.provisioning()
        decision = decide(job, self.seen(a, job.resources[0], Fate(deleted=True)), a.ctx(40))
        assert decision.tombstones == ()
        assert decision.job.walk.ledger == ()

    def test_a_bad_image_that_fails_at_once_is_none(self, a):
        job = a.provisioning()
        row = job.resources[0]
        seen = replace(
            self.seen(a, row, Fate()),
            markers={row.nonce: a.ended(replace(a.marker(), exit_code=1), started_at=20)},
            summaries={row.nonce: None},
        )
        assert decide(job, seen, a.ctx(40)).job.outcome is not None

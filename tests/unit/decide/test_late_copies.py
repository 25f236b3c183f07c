"""A create that was sent more than once may be taken more than once, also when nobody looks any more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.decide import Tombstone, decide
from runtender.model import Outcome, Phase, Reason, ResourceState
from runtender.observed import Absent, MarkerPair, Seen


def over(many, **row):
    """A Job that has ended by its own status, and that is gone with its pods."""
    job = many.running(row=many.row(state=ResourceState.DELETING, delete_sent_at=many.at(90), **row))
    return replace(job, phase=Phase.STOPPING, outcome=Outcome.FAILED, reason=Reason.EXIT_CODE)


def gone(job, **changes):
    nonce = job.resources[0].nonce
    return Seen(sights={nonce: Absent()}, remains={nonce: ()}, **changes)


def test_before_it_rests_the_plane_forbids_the_workers_of_a_late_copy_to_begin(many):
    job = over(many, sent_at=many.at(30))
    decision = decide(job, gone(job), many.ctx(200))
    nonce = job.resources[0].nonce
    assert decision.tombstones == (Tombstone(nonce=nonce, reason=None, detail="the job is over"),)


def test_once_they_are_forbidden_it_rests(many):
    job = over(many, sent_at=many.at(30))
    forbidden = {job.resources[0].nonce: MarkerPair(terminal=many.tombstone(None), terminal_stored=True)}
    assert decide(job, gone(job, markers=forbidden), many.ctx(200)).job.phase is Phase.DONE


@pytest.mark.parametrize(
    "row",
    [{"sent_at": None}, {"sent_at": 0}, {"sent_at": 30, "refused": True}],
    ids=["old row", "once", "refused"],
)
def test_a_create_that_can_land_only_once_costs_no_word(many, row):
    sent = row["sent_at"]
    job = over(many, **{**row, "sent_at": None if sent is None else many.at(sent)})
    decision = decide(job, gone(job), many.ctx(200))
    assert (decision.tombstones, decision.job.phase) == ((), Phase.DONE)

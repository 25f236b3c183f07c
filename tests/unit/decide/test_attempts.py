"""A new attempt places nothing before the old one has left nothing behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.decide import Look, LookKind, SendCreate, decide, wanted
from runtender.model import Outcome, Phase, ResourceState
from runtender.observed import Seen


def second_attempt(a, **changes):
    return replace(a.job(), attempt=2, **changes)


def test_it_asks_for_the_attempt_before_it(a):
    assert wanted(second_attempt(a), Seen(), a.ctx()) == (Look(LookKind.PREDECESSOR, ""),)


def test_a_first_attempt_asks_for_none(a):
    assert Look(LookKind.PREDECESSOR, "") not in wanted(a.job(), Seen(), a.ctx())


@pytest.mark.parametrize("at_rest", [False, None], ids=["not at rest", "not read"])
def test_it_waits_for_a_tick_while_the_old_one_is_cleaned_up(a, at_rest):
    decision = decide(second_attempt(a), Seen(predecessor_at_rest=at_rest), a.ctx(10))
    assert (decision.effects, decision.job.phase, decision.job.resources) == ((), Phase.PENDING, ())
    assert decision.job.wake_at == a.at(70)


def test_it_is_placed_once_the_old_one_is_at_rest(a):
    decision = decide(second_attempt(a), Seen(predecessor_at_rest=True), a.ctx(10))
    assert isinstance(decision.effects[0], SendCreate)


def test_a_cancel_does_not_wait(a):
    job = second_attempt(a, cancel_requested=True)
    assert decide(job, Seen(), a.ctx(10)).job.outcome is Outcome.CANCELLED


def test_the_capacity_wait_bounds_the_waiting(a):
    assert decide(second_attempt(a), Seen(), a.ctx(45 * 60)).job.outcome is Outcome.NO_CAPACITY


def test_later_placements_of_an_attempt_do_not_ask_again(a):
    placed = second_attempt(a, resources=(a.row(state=ResourceState.GONE),))
    assert Look(LookKind.PREDECESSOR, "") not in wanted(placed, Seen(), a.ctx())

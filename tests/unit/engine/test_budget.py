"""The creates of a minute are counted, and those who come too late have their turn in the order they came."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import hypothesis
from hypothesis import strategies as st

from runtender.engine.budget import Budget
from runtender.local.store import MemoryStore
from runtender.model import Walk
from runtender.settings import Settings

MINUTE = timedelta(minutes=1)


class ToldClock:
    """Time passes only when somebody waits."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def a_job(number, accepted_at, **changes):
    return SimpleNamespace(
        **{
            "job_key": f"sf-r{number}-0123456789ab-statistical-a1",
            "accepted_at": accepted_at,
            "walk": Walk(),
            "resources": (),
            **changes,
        }
    )


def given(job, turn):
    """Return the job as it is saved with its turn."""
    return SimpleNamespace(**{**vars(job), "walk": Walk(turn=turn.minute)})


@hypothesis.given(budget=st.integers(1, 60))
def test_no_minute_grants_more_than_the_budget_and_a_rush_uses_it_up(budget):
    plane = _plane(budget)
    drawer = Budget(plane)
    granted = [drawer.draw(a_job(number, plane.clock.now())) for number in range(budget * 12)].count(None)
    # Ten counters with a tenth each: a rush this large finds every one of them.
    assert budget * 0.7 <= granted <= budget


def test_who_comes_too_late_has_a_turn_in_the_first_minute_with_room():
    plane = _plane(1)
    drawer = Budget(plane)
    assert drawer.draw(a_job(0, plane.clock.now())) is None
    turns = [turn for number in range(1, 4) if (turn := drawer.draw(a_job(number, plane.clock.now())))]
    now = minute_of(plane)
    assert [turn.minute for turn in turns] == [now + 1, now + 2, now + 3]


def test_it_is_woken_just_before_that_minute_the_oldest_first():
    plane = _plane(10)
    start = plane.clock.now()
    drawer = Budget(plane)
    plane.clock.sleep(20)
    jobs = [a_job(number, start + timedelta(milliseconds=10 * number)) for number in range(200)]
    turns = [turn for job in jobs if (turn := drawer.draw(job)) is not None]
    for minute in {turn.minute for turn in turns}:
        woken = [turn.at for turn in turns if turn.minute == minute]
        begins = start + MINUTE * (minute - minute_of(plane))
        assert woken == sorted(set(woken))
        assert all(begins - timedelta(seconds=1) <= at < begins for at in woken)


def test_in_its_minute_a_job_may_create_and_draws_nothing():
    plane = _plane(1)
    drawer = Budget(plane)
    first, second = (a_job(number, plane.clock.now()) for number in range(2))
    assert drawer.draw(first) is None
    second = given(second, drawer.draw(second))
    commits = plane.store.commits
    assert drawer.draw(second) is not None, "its minute has not begun"
    plane.clock.sleep(60)
    assert drawer.draw(second) is None
    assert plane.store.commits == commits


def test_nobody_overtakes_those_who_wait():
    plane = _plane(1)
    drawer = Budget(plane)
    early = [a_job(number, plane.clock.now()) for number in range(3)]
    early = [given(job, turn) for job in early if (turn := drawer.draw(job)) is not None]
    plane.clock.sleep(60)
    newcomer = Budget(plane).draw(a_job(99, plane.clock.now()))
    assert newcomer is not None
    assert newcomer.minute == minute_of(plane) + 2
    assert drawer.draw(early[0]) is None


def test_who_missed_a_turn_draws_anew_and_holds_the_budget():
    plane = _plane(1)
    drawer = Budget(plane)
    jobs = [a_job(number, plane.clock.now()) for number in range(3)]
    late = [given(job, turn) for job in jobs if (turn := drawer.draw(job)) is not None]
    plane.clock.sleep(300)
    turns = [drawer.draw(job) for job in late]
    assert turns[0] is None
    assert turns[1] is not None
    assert turns[1].minute == minute_of(plane) + 1


def test_behind_the_longest_queue_a_job_waits_for_its_end_and_has_no_minute_yet():
    plane = _plane(1)
    drawer = Budget(plane)
    for number in range(60):
        drawer.draw(a_job(number, plane.clock.now()))
    last = drawer.draw(a_job(60, plane.clock.now()))
    assert last is not None
    assert last.minute == 0
    assert plane.clock.now() + 59 * MINUTE < last.at < plane.clock.now() + 60 * MINUTE


def test_a_counter_that_is_used_up_is_not_written_again():
    plane = _plane(1)
    drawer = Budget(plane)
    for number in range(10):
        drawer.draw(a_job(number, plane.clock.now()))
    # A granted one for each minute, and one refused before each of the nine.
    assert plane.store.commits == 10 + 9


def minute_of(plane):
    return int(plane.clock.now().timestamp() // 60)


def _plane(budget):
    environment = {"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "code", "SF_API_BUDGET": str(budget)}
    return SimpleNamespace(settings=Settings.from_env(environment), store=MemoryStore(), clock=ToldClock())

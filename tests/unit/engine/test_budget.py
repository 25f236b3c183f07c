"""The creates of a minute are counted, and those who come too late have their turn in the order they came."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from hypothesis import given
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


def waited(job):
    return SimpleNamespace(**{**vars(job), "walk": Walk(queued=True)})


@given(budget=st.integers(1, 60))
def test_no_minute_grants_more_than_the_budget_and_a_rush_uses_it_up(budget):
    plane = _plane(budget)
    drawer = Budget(plane)
    granted = [drawer.draw(a_job(number, plane.clock.now())) for number in range(budget * 12)].count(None)
    # Ten counters with a tenth each: a rush this large finds every one of them.
    assert budget * 0.7 <= granted <= budget


def test_who_comes_too_late_comes_again_just_before_the_next_minute_the_oldest_first():
    plane = _plane(1)
    start = plane.clock.now()
    drawer = Budget(plane)
    plane.clock.sleep(20)
    jobs = [a_job(number, start + timedelta(milliseconds=10 * number)) for number in range(200)]
    turns = [drawer.draw(job) for job in jobs]
    assert turns[0] is None
    waiting = [turn for turn in turns if turn is not None]
    assert len(waiting) == 199
    assert waiting == sorted(set(waiting))
    assert all(start + MINUTE - timedelta(seconds=1) <= turn < start + MINUTE for turn in waiting)


def test_the_next_minute_has_a_budget_of_its_own():
    plane = _plane(1)
    drawer = Budget(plane)
    first, second = (a_job(number, plane.clock.now()) for number in range(2))
    assert drawer.draw(first) is None
    assert drawer.draw(second) is not None
    plane.clock.sleep(60)
    assert drawer.draw(waited(second)) is None


def test_a_counter_that_is_used_up_is_not_written_again():
    plane = _plane(1)
    drawer = Budget(plane)
    for number in range(50):
        drawer.draw(a_job(number, plane.clock.now()))
    assert plane.store.commits == 2


def test_a_newcomer_stands_behind_those_who_can_use_the_minute_up_and_they_do_not():
    plane = _plane(1)
    drawer = Budget(plane)
    early = [a_job(number, plane.clock.now()) for number in range(3)]
    for job in early:
        drawer.draw(job)
    plane.clock.sleep(60)
    assert drawer.draw(a_job(99, plane.clock.now())) is not None
    assert drawer.draw(waited(early[1])) is None


def test_a_walk_that_goes_on_is_no_newcomer():
    plane = _plane(1)
    drawer = Budget(plane)
    for number in range(3):
        drawer.draw(a_job(number, plane.clock.now()))
    plane.clock.sleep(60)
    assert drawer.draw(a_job(99, plane.clock.now(), resources=("one that is gone",))) is None


def _plane(budget):
    environment = {"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "code", "SF_API_BUDGET": str(budget)}
    return SimpleNamespace(settings=Settings.from_env(environment), store=MemoryStore(), clock=ToldClock())

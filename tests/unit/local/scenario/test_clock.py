"""The services' clock, and what waits for its moments."""

from __future__ import annotations

import threading
from datetime import timedelta

from runtender.local.http import utc_now
from runtender.local.scenario.clock import CloudClock, Timers


def test_a_scenario_counts_the_clouds_time_and_not_the_computers() -> None:
    clock = CloudClock(scale=1000)
    clock.opened_at -= timedelta(seconds=1)
    assert timedelta(minutes=16) < clock.elapsed() < timedelta(minutes=60)


def test_a_jump_is_as_long_as_the_scenario_says_on_the_clouds_clock() -> None:
    clock = CloudClock(scale=20)
    clock.jump(timedelta(minutes=20))
    ahead = clock.now() - utc_now()
    assert timedelta(seconds=59) < ahead <= timedelta(seconds=60)
    clock.jump(timedelta(minutes=-40))
    assert clock.now() < utc_now()


def test_what_waits_happens_in_time() -> None:
    happened = threading.Event()
    with Timers(scale=1000) as timers:
        timers.after(timedelta(seconds=10), happened.set)
        assert happened.wait(10)


def test_nothing_happens_any_more_once_it_is_over() -> None:
    happened = threading.Event()
    timers = Timers(scale=1)
    timers.after(timedelta(hours=1), happened.set)
    timers.close()
    timers.after(timedelta(), happened.set)
    timers.close()
    assert not happened.wait(0.05)

"""The real clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runtender.gcp.clock import SystemClock
from runtender.ports import Clock


def test_the_clock_tells_the_present_in_utc():
    clock: Clock = SystemClock()
    now = clock.now()
    assert (now.tzinfo, abs(datetime.now(UTC) - now) < timedelta(seconds=5)) == (UTC, True)


def test_the_clock_waits():
    clock = SystemClock()
    before = clock.now()
    clock.sleep(0.01)
    assert clock.now() - before >= timedelta(seconds=0.009)


def test_tokens_are_unique_and_chance_lies_between_0_and_1():
    clock = SystemClock()
    assert len({clock.token() for _ in range(1000)}) == 1000
    assert all(0 <= clock.jitter() < 1 for _ in range(1000))

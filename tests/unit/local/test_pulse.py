"""A served core's time: everything happens when it is due or called for, and nothing is done in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from runtender.local.compute.agenda import Agenda
from runtender.local.http import utc_now
from runtender.local.pulse import Pulse

# Far longer than anything here takes.
PATIENCE_S = 20.0


class Core:
    """A core whose events are words."""

    def __init__(self) -> None:
        self.looks = 0
        self._agenda = Agenda()
        self._events: list[str] = []

    def say(self, word: str, at: datetime) -> None:
        self._agenda.at(at, lambda _due: self._events.append(word))

    def advance(self, now: datetime) -> tuple[str, ...]:
        self.looks += 1
        self._agenda.run(now)
        events, self._events = tuple(self._events), []
        return events

    def next_due(self) -> datetime | None:
        return self._agenda.next_due()


class Clock:
    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return utc_now() + self.ahead


class Heard:
    """What was handed over."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._news = threading.Condition()

    def hear(self, word: str) -> None:
        with self._news:
            self.words.append(word)
            self._news.notify_all()

    def wait_for(self, *words: str) -> None:
        with self._news:
            assert self._news.wait_for(lambda: self.words == list(words), PATIENCE_S), self.words


@pytest.fixture
def core() -> Core:
    return Core()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sound_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what wakes it, a pulse would sleep longer than a test waits."""
    monkeypatch.setattr("runtender.local.pulse._LONGEST_S", 10 * PATIENCE_S)


@pytest.fixture
def pulse(core: Core, clock: Clock) -> Iterator[Pulse[str]]:
    pulse = Pulse(core, clock.now)
    yield pulse
    pulse.close()


@pytest.fixture
def heard(pulse: Pulse[str]) -> Heard:
    heard = Heard()
    pulse.run(heard.hear)
    return heard


@pytest.mark.usefixtures("sound_sleep")
def test_what_is_due_happens_by_itself_in_its_order(core: Core, pulse: Pulse[str], heard: Heard) -> None:
    now = utc_now()
    with pulse:
        for word, ms in (("third", 300), ("first", 100), ("second", 200)):
            core.say(word, now + timedelta(milliseconds=ms))
    heard.wait_for("first", "second", "third")


@pytest.mark.usefixtures("sound_sleep")
def test_what_a_call_brings_about_is_handed_over_without_waiting(
    core: Core, pulse: Pulse[str], heard: Heard
) -> None:
    for words in (["one"], ["one", "two"]):
        with pulse:
            core.say(words[-1], utc_now())
        heard.wait_for(*words)


@pytest.mark.usefixtures("sound_sleep", "heard")
def test_nothing_is_looked_at_while_nothing_is_due(core: Core) -> None:
    time.sleep(0.1)
    before = core.looks
    time.sleep(0.5)
    assert core.looks == before


def test_a_clock_that_jumps_ahead_is_noticed(
    core: Core, clock: Clock, pulse: Pulse[str], heard: Heard
) -> None:
    with pulse:
        core.say("late", utc_now() + timedelta(hours=1))
    # It has looked, and sleeps.
    time.sleep(0.1)
    clock.ahead = timedelta(hours=2)
    heard.wait_for("late")


def test_no_time_passes_once_it_is_closed(core: Core, pulse: Pulse[str], heard: Heard) -> None:
    pulse.close()
    with pulse:
        core.say("never", utc_now())
    time.sleep(0.05)
    assert heard.words == []
    pulse.close()

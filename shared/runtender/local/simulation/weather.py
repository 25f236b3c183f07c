"""The weather of a simulated world: what goes wrong with calls, events, commits and handlers, and when.

`Weather` is fair but for the mishaps that were planned, one by one. `Storm` draws mishaps by chance; which kinds it knows
and how often they come is drawn first, so that some worlds see a lot of one thing and nothing of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from random import Random

from runtender.local.http import HttpRequest, HttpResponse
from runtender.local.scenario.answers import ANSWERS
from runtender.local.scenario.rules import Answer
from runtender.local.simulation.invocations import Fate
from runtender.local.topics import Delivery, Message, Subscription

BROKEN_OFF = ANSWERS[Answer.NO_ANSWER]
RATE = ANSWERS[Answer.RATE_LIMITED]
FORBIDDEN = ANSWERS[Answer.FORBIDDEN]
TOO_MANY = ANSWERS[Answer.TOO_MANY_REQUESTS]
INTERNAL = ANSWERS[Answer.INTERNAL_ERROR]
UNAVAILABLE = ANSWERS[Answer.UNAVAILABLE]
NAME_TAKEN = ANSWERS[Answer.ALREADY_EXISTS]

INSERT = "compute.instances.insert"
DELETE = "compute.instances.delete"
GET = "compute.instances.get"
FLEET = "compute.instances.aggregatedList"
UPLOAD = "storage.objects.insert"

_NO_TIME = timedelta()


@dataclass(frozen=True, kw_only=True, slots=True)
class Mishap:
    """What one HTTP call is answered instead of the truth.

    `applied`: it takes effect all the same, at once or, with `late`, that much after the answer.
    """

    answer: HttpResponse
    applied: bool = False
    late: timedelta = _NO_TIME

    def __str__(self) -> str:
        taken = f", applied {self.late or 'at once'}" if self.applied else ""
        return f"{self.answer.status or 'no answer'}{taken}"


class CommitFault(StrEnum):
    """How a commit goes wrong. A client that repeats a commit which went through hears of a conflict with itself."""

    LOST = "lost"
    UNTOLD = "applied, told to come again"
    ECHOED = "applied, told of a conflict"


@dataclass(kw_only=True, slots=True)
class Plan:
    """A mishap for the next `times` calls of a method that match."""

    method: str
    mishap: Mishap
    times: int
    of_worker: bool
    matches: Callable[[HttpRequest], bool]


def any_call(_request: HttpRequest) -> bool:
    """Match every call."""
    return True


@dataclass(kw_only=True, slots=True)
class Weather:
    """Fair weather, and what was planned. `calm` ends all of it."""

    plans: list[Plan] = field(default_factory=list)
    commits: list[CommitFault | None] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)
    arriving: list[Sequence[timedelta]] = field(default_factory=list)
    lost_publishes: int = 0

    def plan(
        self,
        method: str,
        answer: HttpResponse,
        *,
        times: int = 1,
        applied: bool = False,
        late: timedelta = _NO_TIME,
        of_worker: bool = False,
        matches: Callable[[HttpRequest], bool] = any_call,
    ) -> None:
        """Let the next `times` calls of a method, by the plane or a worker, be answered with `answer`."""
        mishap = Mishap(answer=answer, applied=applied or bool(late), late=late)
        self.plans.append(
            Plan(method=method, mishap=mishap, times=times, of_worker=of_worker, matches=matches)
        )

    def call(self, method: str, request: HttpRequest, *, of_worker: bool) -> Mishap | None:
        """Return what becomes of an HTTP call; None lets it through."""
        for plan in self.plans:
            if plan.times and (plan.method, plan.of_worker) == (method, of_worker) and plan.matches(request):
                plan.times -= 1
                return plan.mishap
        return None

    def commit(self) -> CommitFault | None:
        """Return what becomes of a commit."""
        return self.commits.pop(0) if self.commits else None

    def read_fails(self) -> bool:
        """True when a read of the store gets no answer."""
        return False

    def publish_fails(self) -> bool:
        """True when a message of the plane is not taken."""
        self.lost_publishes -= 1
        return self.lost_publishes >= 0

    def fate(self, _kind: str) -> Fate:
        """Return what becomes of the next invocation of a handler."""
        return self.fates.pop(0) if self.fates else Fate()

    def arrivals(self, _subscription: Subscription, _message: Message) -> Sequence[timedelta]:
        """Return the delay of each copy in which a message arrives; none is a loss."""
        return self.arriving.pop(0) if self.arriving else (_NO_TIME,)

    def pick(self, due: Sequence[Delivery]) -> Delivery:
        """Return which of several due events comes first."""
        return due[0]

    def saw_fleet(self, answer: HttpResponse) -> None:
        """Take note of a true fleet list, to be shown again when it is out of date."""

    def calm(self) -> None:
        """Let nothing go wrong from now on."""
        self.plans.clear()
        self.commits.clear()
        self.fates.clear()
        self.arriving.clear()
        self.lost_publishes = 0


_UNCLEAR = (BROKEN_OFF, INTERNAL, UNAVAILABLE)
_TRANSIENT = (*_UNCLEAR, TOO_MANY)
_REFUSED = (RATE, FORBIDDEN)
# What a service may take to do what it gave no answer to; a create may take much longer.
_LAGS_S = (0, 0, 0, 2, 25)
_LATE_S = (5, 30, 60, 150, 400, 1200)
_FREEZES_S = (5, 20, 45, 60, 100, 250, 700)
_DELAYS_S = (0, 0, 1, 10, 60, 200, 900)
_MOST_CALLS = 30
# After these a handler knows something that nobody else does.
_TURNS = (INSERT, DELETE, "store.commit", "store.get", "objects.create", "objects.list", GET, "store.due")
# Of every call a storm may touch: how often a kind comes once a world has it.
_RATES = (0.03, 0.15, 0.5)


class Storm(Weather):
    """Mishaps by chance, from `chance` alone."""

    __slots__ = ("_blows", "_chance", "_fleet")

    KINDS = (
        "reads",
        "creates",
        "deletes",
        "lists",
        "uploads",
        "store",
        "events",
        "kills",
        "freezes",
        "skews",
    )

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self._chance = chance
        known = chance.sample(self.KINDS, chance.choice((1, 2, 3, len(self.KINDS))))
        self._blows = {kind: chance.choice(_RATES) for kind in known}
        self._fleet: HttpResponse | None = None

    def call(self, method: str, request: HttpRequest, *, of_worker: bool) -> Mishap | None:
        planned = super().call(method, request, of_worker=of_worker)
        if planned is not None:
            return planned
        if of_worker or method == UPLOAD:
            return self._transient() if self._strikes("uploads") else None
        if method == INSERT:
            return self._create_mishap() if self._strikes("creates") else None
        if request.method == "DELETE":
            return self._delete_mishap() if self._strikes("deletes") else None
        if method == FLEET:
            return self._list_mishap() if self._strikes("lists") else None
        if self._strikes("reads"):
            return Mishap(answer=self._chance.choice((*_TRANSIENT, *_REFUSED)))
        return None

    def commit(self) -> CommitFault | None:
        return self._chance.choice(list(CommitFault)) if self._strikes("store") else None

    def read_fails(self) -> bool:
        return self._strikes("store")

    def publish_fails(self) -> bool:
        return self._strikes("events")

    def fate(self, _kind: str) -> Fate:
        killed, frozen, skewed = map(self._strikes, ("kills", "freezes", "skews"))
        skew = timedelta(seconds=self._chance.uniform(-5, 5)) if skewed else _NO_TIME
        if not killed and not frozen:
            return Fate(skew=skew)
        span = timedelta(seconds=self._chance.choice(_FREEZES_S)) if frozen else _NO_TIME
        # Where the interesting calls are, or anywhere.
        after = self._chance.choice(_TURNS) if self._chance.random() < 0.5 else ""
        # Frozen after a call: between looking at the clock and sending there is no time for anything.
        freeze_at = self._point() | 1 if frozen and not after else None
        kill_at = self._point() if killed and (frozen or not after) else None
        return Fate(kill_at=kill_at, freeze_at=freeze_at, after=after, freeze_for=span, skew=skew)

    def _point(self) -> int:
        return self._chance.randrange(2 * _MOST_CALLS)

    def arrivals(self, _subscription: Subscription, _message: Message) -> Sequence[timedelta]:
        if not self._strikes("events"):
            return (_NO_TIME,)
        copies = self._chance.choice((0, 1, 1, 2, 3))
        return tuple(timedelta(seconds=self._chance.choice(_DELAYS_S)) for _ in range(copies))

    def pick(self, due: Sequence[Delivery]) -> Delivery:
        return self._chance.choice(due) if "events" in self._blows else due[0]

    def saw_fleet(self, answer: HttpResponse) -> None:
        if self._fleet is None or self._chance.random() < 0.3:
            self._fleet = answer

    def calm(self) -> None:
        super().calm()
        self._blows.clear()

    def _strikes(self, kind: str) -> bool:
        rate = self._blows.get(kind)
        return rate is not None and self._chance.random() < rate

    def _transient(self) -> Mishap:
        return self._draw(_TRANSIENT)

    def _create_mishap(self) -> Mishap:
        mishap = self._draw((*_TRANSIENT, *_UNCLEAR, *_UNCLEAR, *_REFUSED, NAME_TAKEN))
        late = self._chance.choice((0, 0, *_LATE_S)) if mishap.applied else 0
        return replace(mishap, late=timedelta(seconds=late))

    def _delete_mishap(self) -> Mishap:
        return self._draw((*_TRANSIENT, *_REFUSED))

    def _draw(self, answers: Sequence[HttpResponse]) -> Mishap:
        """Draw an answer; one that does not say whether the call was taken, and when, leaves that to chance."""
        answer = self._chance.choice(answers)
        applied = answer in _UNCLEAR and self._chance.random() < 0.6
        late = self._chance.choice(_LAGS_S) if applied else 0
        return Mishap(answer=answer, applied=applied, late=timedelta(seconds=late))

    def _list_mishap(self) -> Mishap:
        old = [self._fleet] if self._fleet is not None else []
        return Mishap(answer=self._chance.choice([*_TRANSIENT, *old, *old]))

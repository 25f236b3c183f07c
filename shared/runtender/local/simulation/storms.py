"""Storms: mishaps drawn by chance. Which kinds one knows, and how often they come, is drawn first, so that some worlds see a
lot of one thing and nothing of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random

from runtender.local.http import HttpRequest, HttpResponse
from runtender.local.simulation import statuses
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.weather import (
    BROKEN_OFF,
    CREATE_JOB,
    DELETE,
    DELETE_JOB,
    FLEET,
    FORBIDDEN,
    GET,
    GET_CLUSTER,
    GET_JOB,
    INSERT,
    INTERNAL,
    LIST_CLUSTERS,
    LIST_JOBS,
    LIST_PODS,
    NAME_TAKEN,
    RATE,
    TOO_MANY,
    UNAVAILABLE,
    UPLOAD,
    CommitFault,
    Mishap,
    Weather,
)
from runtender.local.topics import Delivery, Message, Subscription

_NO_TIME = timedelta()
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
_CLUSTER_TURNS = (*_TURNS, CREATE_JOB, CREATE_JOB, DELETE_JOB, GET_JOB, LIST_JOBS, LIST_PODS, "objects.stat")
# Of every call a storm may touch: how often a kind comes once a world has it.
_RATES = (0.03, 0.15, 0.5)


_CLUSTER_UNCLEAR = (BROKEN_OFF, statuses.INTERNAL, statuses.UNAVAILABLE)
_CLUSTER_TRANSIENT = (*_CLUSTER_UNCLEAR, statuses.TOO_MANY)
_CLUSTER_REFUSED = (*_CLUSTER_TRANSIENT, statuses.UNAUTHORIZED, statuses.FORBIDDEN, statuses.NOT_THERE)
# What ends a job at once is rare.
_CREATE_REFUSED = (
    statuses.NAME_TAKEN,
    statuses.NAME_TAKEN,
    statuses.CONFLICT,
    statuses.NO_QUOTA,
    statuses.NO_NAMESPACE,
    statuses.FORBIDDEN,
)
_KINDS_OF_CALLS = {
    CREATE_JOB: "creates",
    LIST_JOBS: "lists",
    GET_CLUSTER: "lookups",
    LIST_CLUSTERS: "lookups",
}


class ClusterStorm:
    """Mishaps of calls to the GKE API and to clusters, from `chance` alone."""

    KINDS = ("reads", "creates", "deletes", "lists", "lookups", "pages")

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        known = chance.sample(self.KINDS, chance.choice((1, 2, 3, len(self.KINDS))))
        self._blows = {kind: chance.choice(_RATES) for kind in known}
        self._fleet: HttpResponse | None = None

    def call(self, method: str, request: HttpRequest) -> Mishap | None:
        """Return what becomes of a call; None lets it through."""
        kind = _KINDS_OF_CALLS.get(method, "deletes" if request.method == "DELETE" else "reads")
        rate = self._blows.get(kind)
        if rate is None or self._chance.random() >= rate:
            return None
        match kind:
            case "lookups":
                return Mishap(answer=self._chance.choice((*_TRANSIENT, FORBIDDEN)))
            case "lists" if self._fleet is not None and self._chance.random() < 0.4:
                return Mishap(answer=self._fleet)
            case "creates":
                return self._create_mishap()
            case "deletes":
                return self._unclear(self._chance.choice((*_CLUSTER_TRANSIENT, statuses.FORBIDDEN)))
            case _:
                return Mishap(answer=self._chance.choice(_CLUSTER_REFUSED))

    def saw_jobs(self, answer: HttpResponse) -> None:
        """Take note of a true list, to be shown again when it is out of date."""
        if self._fleet is None or self._chance.random() < 0.3:
            self._fleet = answer

    def page_size(self) -> int | None:
        """Return how many objects a page has."""
        return 1 if "pages" in self._blows else None

    def calm(self) -> None:
        """Let nothing go wrong from now on."""
        self._blows.clear()

    def _create_mishap(self) -> Mishap:
        mishap = self._unclear(
            self._chance.choice((*_CLUSTER_TRANSIENT, *_CLUSTER_UNCLEAR, *_CREATE_REFUSED))
        )
        late = self._chance.choice((0, 0, *_LATE_S)) if mishap.applied else 0
        return replace(mishap, late=timedelta(seconds=late))

    def _unclear(self, answer: HttpResponse) -> Mishap:
        """Let an answer that does not say whether the call was taken leave that to chance."""
        applied = answer in _CLUSTER_UNCLEAR and self._chance.random() < 0.6
        late = self._chance.choice(_LAGS_S) if applied else 0
        return Mishap(answer=answer, applied=applied, late=timedelta(seconds=late))


class Storm(Weather):
    """Mishaps by chance, from `chance` alone."""

    __slots__ = ("_blows", "_chance", "_clusters", "_fleet")

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

    def __init__(self, chance: Random, clusters: ClusterStorm | None = None) -> None:
        super().__init__()
        self._chance = chance
        self._clusters = clusters
        known = chance.sample(self.KINDS, chance.choice((1, 2, 3, len(self.KINDS))))
        self._blows = {kind: chance.choice(_RATES) for kind in known}
        self._fleet: HttpResponse | None = None

    def call(self, method: str, request: HttpRequest, *, of_worker: bool) -> Mishap | None:
        planned = super().call(method, request, of_worker=of_worker)
        if planned is not None:
            return planned
        if self._clusters is not None and not of_worker and method.startswith(("kubernetes.", "container.")):
            return self._clusters.call(method, request)
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
        after = self._chance.choice(self._turns) if self._chance.random() < 0.5 else ""
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

    def saw_jobs(self, answer: HttpResponse) -> None:
        if self._clusters is not None:
            self._clusters.saw_jobs(answer)

    def page_size(self) -> int | None:
        return None if self._clusters is None else self._clusters.page_size()

    def calm(self) -> None:
        super().calm()
        self._blows.clear()
        if self._clusters is not None:
            self._clusters.calm()

    @property
    def _turns(self) -> Sequence[str]:
        return _TURNS if self._clusters is None else _CLUSTER_TURNS

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

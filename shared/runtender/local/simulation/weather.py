"""The weather of a simulated world: what goes wrong with calls, events, commits and handlers, and when.

It is fair but for the mishaps that were planned, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

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
NOT_FOUND = ANSWERS[Answer.NOT_FOUND]

INSERT = "compute.instances.insert"
DELETE = "compute.instances.delete"
GET = "compute.instances.get"
FLEET = "compute.instances.aggregatedList"
UPLOAD = "storage.objects.insert"

GET_CLUSTER = "container.projects.locations.clusters.get"
LIST_CLUSTERS = "container.projects.locations.clusters.list"
CREATE_JOB = "kubernetes.jobs.create"
DELETE_JOB = "kubernetes.jobs.delete"
DELETE_JOBS = "kubernetes.jobs.deletecollection"
DELETE_PODS = "kubernetes.pods.deletecollection"
GET_JOB = "kubernetes.jobs.get"
LIST_JOBS = "kubernetes.jobs.list"
LIST_PODS = "kubernetes.pods.list"

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
    jobs_per_page: int | None = None

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

    def saw_jobs(self, answer: HttpResponse) -> None:
        """Take note of a true list of a cluster's Jobs, to be shown again when it is out of date."""

    def page_size(self) -> int | None:
        """Return how many objects a page of a cluster's list has; None where the caller's word counts."""
        return self.jobs_per_page

    def calm(self) -> None:
        """Let nothing go wrong from now on."""
        self.plans.clear()
        self.commits.clear()
        self.fates.clear()
        self.arriving.clear()
        self.lost_publishes = 0
        self.jobs_per_page = None

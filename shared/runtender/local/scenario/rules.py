"""What a scenario can say: its rules as values. Times count from the start of the cloud, on the cloud's own clock.

A rule that leaves something out matches everything there; how each is written is told in `scenarios/README.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from runtender.local.scenario.cluster_rules import ClusterRule, PodRule
from runtender.model import Phase

_AT_ONCE = timedelta()


class Shape(StrEnum):
    """How a stock-out shows.

    OPERATION: the insert is taken and its operation ends with the error. HTTP: the insert itself is refused. LATE: the
    insert succeeds and the machine stops before it was ever up.
    """

    OPERATION = "operation"
    HTTP = "http"
    LATE = "late"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stockout:
    """Inserts that find no machine. None matches everything; `first` bounds how many are hit."""

    zone: str | None = None
    region: str | None = None
    placement: int | None = None
    attempt: int | None = None
    first: int | None = None
    after: timedelta = _AT_ONCE
    until: timedelta | None = None
    shape: Shape = Shape.OPERATION
    zones_available: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaRule:
    """How much of a meter may be in use: in a region, or None in each of them. GPUS_ALL_REGIONS counts over all."""

    meter: str
    limit: int
    region: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """Which machines are meant: those in a zone or region, or of a placement or attempt of their job."""

    zone: str | None = None
    region: str | None = None
    placement: int | None = None
    attempt: int | None = None

    def matches(self, *, zone: str, region: str, labels: Mapping[str, str]) -> bool:
        """True for a machine there, whose labels say which placement and attempt it is."""
        pairs = (
            (self.zone, zone),
            (self.region, region),
            (self.placement, labels.get("sf-placement")),
            (self.attempt, labels.get("sf-attempt")),
        )
        return all(rule is None or str(rule) == fact for rule, fact in pairs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """Whose turn a rule is, of all that it matches: not before `skip` others, then at most `first`.

    And only from `after` to `until`; `lasting` counts from the first that it hits.
    """

    skip: int = 0
    first: int | None = None
    after: timedelta = _AT_ONCE
    until: timedelta | None = None
    lasting: timedelta | None = None


class Caller(StrEnum):
    """Who calls an API. GUEST is a machine's startup script, PLANE everybody else."""

    PLANE = "plane"
    GUEST = "guest"


class Answer(StrEnum):
    """What a call is answered instead of the truth. FUNCTIONS_KILLED: nothing, and whoever asked is dead."""

    NO_ANSWER = "no_answer"
    FUNCTIONS_KILLED = "functions_killed"
    RATE_LIMITED = "rate_limited"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    ALREADY_EXISTS = "already_exists"
    TOO_MANY_REQUESTS = "too_many_requests"
    INTERNAL_ERROR = "internal_error"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRule:
    """Calls of an API method that get another answer. `name` is a shell pattern of the machine's or object's name.

    `applied`: the call takes effect all the same; with `late`, that much after its answer.
    """

    method: str
    by: Caller | None = None
    name: str = "*"
    turn: Turn = Turn()
    answer: Answer
    applied: bool = False
    late: timedelta = _AT_ONCE


@dataclass(frozen=True, kw_only=True, slots=True)
class ListRule:
    """Fleet lists that do not show what is: without the zones that are `missing`, or as they were `lag` ago."""

    missing: tuple[str, ...] = ()
    lag: timedelta = _AT_ONCE
    turn: Turn = Turn()


class EventKind(StrEnum):
    """The plane's events. STARTED and TERMINAL are notifications of a worker's two markers."""

    SUBMIT = "submit"
    STARTED = "started"
    TERMINAL = "terminal"
    TICK = "tick"


@dataclass(frozen=True, kw_only=True, slots=True)
class EventRule:
    """How events of a kind arrive: the delay of each copy. No copy is a loss, two are a double."""

    kind: EventKind
    arrives: tuple[timedelta, ...]
    turn: Turn = Turn()


class Blow(StrEnum):
    """What can happen to a machine. LOSE: it vanishes, and no record says why."""

    PREEMPT = "preempt"
    HOST_ERROR = "host_error"
    LOSE = "lose"
    KILL_SCRIPT = "kill_script"
    TERMINATE_SCRIPT = "terminate_script"
    END_CONTAINER = "end_container"


class Moment(StrEnum):
    """From when the time to a blow counts: the machine is up, its worker has said that it started, or sends its summary."""

    BOOTED = "booted"
    STARTED = "started"
    SUMMARY = "summary"


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineRule:
    """A blow to machines, some time after a moment of theirs; each is hit once, and at most `first` of them.

    `exit_code` and `out_of_memory` say how a container ends that END_CONTAINER hits.
    """

    blow: Blow
    moment: Moment = Moment.STARTED
    after: timedelta = _AT_ONCE
    where: Where = Where()
    first: int | None = None
    exit_code: int = 137
    out_of_memory: bool = False


class StrangerKind(StrEnum):
    """What a stranger has: a machine that runs, or a Job on the standing cluster that has ended."""

    MACHINE = "machine"
    JOB = "job"


@dataclass(frozen=True, kw_only=True, slots=True)
class StrangerRule:
    """Things of somebody else, of the very name that the plane's call asks for, and there before it."""

    kind: StrangerKind = StrangerKind.MACHINE
    where: Where = Where()
    first: int | None = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockJump:
    """The clock of the services jumps at a time, ahead or back, and the plane's does not."""

    at: timedelta
    by: timedelta


class Workload(StrEnum):
    """What the demo submits. SAMPLE is the forecast with fewer series and models, TASK a plain command."""

    FORECAST = "forecast"
    SAMPLE = "sample"
    TASK = "task"


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoPlan:
    """What the demo does in a scenario: `copies` of one message at once; cancelled when its job is in `cancel_in`.

    `limits` are the message's, in its own words. `command` is a task's; `config` replaces fields of the workload's. For each
    span of `again` the same is submitted as a run of its own, so long after all of the run before it is gone.

    With `workers` it runs as an Indexed Job on the standing cluster instead of on a machine. With `compare_with_workers` it
    does so once more, after all else, and every cell of that run has to equal the first run's. `image` is not the local
    cloud's own.
    """

    workload: Workload = Workload.FORECAST
    command: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    copies: int = 1
    cancel_in: Phase | None = None
    limits: Mapping[str, str] = field(default_factory=dict)
    again: tuple[timedelta, ...] = ()
    workers: int | None = None
    compare_with_workers: int | None = None
    image: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """One scenario. The default is fair weather.

    `plane` has settings of the plane (SF_*) that differ from the local cloud's. `regions` are those that it may use beside
    its own, in this order. `expect` says how the demo's last run ends, by the names of `demo_expectations.facts_of`.
    """

    name: str = "fair"
    description: str = ""
    plane: Mapping[str, str] = field(default_factory=dict)
    regions: tuple[str, ...] = ()
    stockouts: tuple[Stockout, ...] = ()
    quotas: tuple[QuotaRule, ...] = ()
    calls: tuple[CallRule, ...] = ()
    lists: tuple[ListRule, ...] = ()
    events: tuple[EventRule, ...] = ()
    machines: tuple[MachineRule, ...] = ()
    strangers: tuple[StrangerRule, ...] = ()
    cluster: ClusterRule = field(default_factory=ClusterRule)
    pods: tuple[PodRule, ...] = ()
    clock: tuple[ClockJump, ...] = ()
    demo: DemoPlan = DemoPlan()
    expect: Mapping[str, str | int] = field(default_factory=dict)


def zones_text(zones: Sequence[str]) -> str:
    """Say in which zones something happened, in order, as an expectation has it."""
    return ", ".join(zones) or "none"

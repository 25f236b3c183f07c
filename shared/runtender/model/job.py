"""A job and all that it remembers: its resource rows, its walk, its deadlines, its end, its history."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from runtender.model.plan import JobPlan, Placement
from runtender.model.words import (
    Admission,
    CleanupState,
    Json,
    Outcome,
    Phase,
    Reason,
    ResourceKind,
    ResourceState,
    Scope,
    Verdict,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """One thing that may exist in the cloud, saved before the call that makes it.

    `placement` counts placements of this job from 0, `try_number` the tries at one placement from 0; both go into
    `nonce` and `request_id`. `since` is when the row was first saved (the earliest time its create could have been
    sent), `sent_at` the latest. `token` and `until` name the invocation that owns the next call and for how long.
    `refused` says that the create was definitely refused, so no worker of this nonce can exist. `place` is the index of the
    plan's placement.
    """

    kind: ResourceKind
    name: str
    location: str
    placement: int
    try_number: int
    nonce: str
    request_id: str
    state: ResourceState
    operation: str | None = None
    target_id: str | None = None
    uid: str | None = None
    token: str | None = None
    since: datetime
    until: datetime | None = None
    sent_at: datetime | None = None
    created_at: datetime | None = None
    confirmed_at: datetime | None = None
    delete_sent_at: datetime | None = None
    missing_since: datetime | None = None
    refused: bool = False
    place: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A zone, region or the project that is not to be tried before `until`: with that machine, or (None) with any."""

    scope: Scope
    name: str
    until: datetime
    machine: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerEntry:
    """One failed placement: where, what it was taken for, the API's own words (cut), how long it took.

    `scope` is how far the verdict reaches; `recognised` is false where an unknown code was taken for a stock-out.
    """

    candidate: str
    verdict: Verdict
    code: str
    message: str
    elapsed_s: float
    at: datetime
    scope: Scope = Scope.ZONE
    recognised: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Walk:
    """Where the search for capacity stands.

    `order` lists the plan's placements by index in the order of this pass, `next` is the position in it, `passes` counts
    full passes done, `attempts` the placements that failed. No create is sent before `resume_at`. `preflight` has what the
    newest look at quota said of each region, `quota_waits` counts the passes that it let nobody begin. `turn` is the minute
    in which the job may send its next create, if it has to wait for one; `resume_at` is then kept to the moment.
    """

    passes: int = 0
    next: int = 0
    order: tuple[int, ...] = ()
    resume_at: datetime | None = None
    attempts: int = 0
    blocked: tuple[Block, ...] = ()
    ledger: tuple[LedgerEntry, ...] = ()
    exhausted: bool = False
    api_waits: int = 0
    preflight: tuple[Json, ...] = ()
    quota_waits: int = 0
    turn: int | None = None

    def blocked_at(self, now: datetime) -> tuple[Block, ...]:
        """Return the blocks that still hold."""
        return tuple(block for block in self.blocked if block.until > now)


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadlines:
    """Capacity: from acceptance. Boot: from the confirmed create. Run: from the started marker. Moments, not spans."""

    capacity: datetime
    boot: datetime | None = None
    run: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleanup:
    """Teardown's own state with its retries, apart from the outcome."""

    state: CleanupState = CleanupState.NONE
    reason: str = ""
    tries: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Cells:
    """What has landed of the results: number of cell files, and when the newest one did."""

    count: int = 0
    last_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Indexes:
    """How far the workers of an Indexed Job are, by its own status. Indexes as Kubernetes writes them: `0,2-5`."""

    completions: int = 0
    active: int = 0
    completed: str = ""
    failed: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """The worker's own count of its results, over all ranks."""

    n_cells: int
    n_ok: int
    n_error: int
    complete: bool
    detail: Json = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseTimes:
    """Seconds: from acceptance to the worker's start (the walk included), from there to its end, and over all.

    None: not known.
    """

    provision_s: float | None = None
    execute_s: float | None = None
    total_wall_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryRow:
    """One transition and its cause, written in the same commit as the transition."""

    at: datetime
    phase: Phase
    outcome: Outcome | None
    cause: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """The unit of work: one family slice of a run, one attempt.

    `admission` is null where there are no limits. `queue_at` is the job's place among those who wait for them, `admitted_at`
    when it was let in. `indexes` is the progress of many workers; `stirred_at` is when an event of one of them last was taken
    as a reason to look at all.
    """

    job_key: str
    key: str
    run_id: str
    family: str
    attempt: int
    runtime: str
    plan: JobPlan
    phase: Phase = Phase.PENDING
    outcome: Outcome | None = None
    reason: Reason | None = None
    detail: str = ""
    cleanup: Cleanup = Cleanup()
    cancel_requested: bool = False
    resources: tuple[Resource, ...] = ()
    walk: Walk = Walk()
    deadlines: Deadlines
    accepted_at: datetime
    admission: Admission | None = None
    queue_at: datetime | None = None
    admitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    wake_at: datetime | None
    cells: Cells = Cells()
    indexes: Indexes | None = None
    stirred_at: datetime | None = None
    summary: Summary | None = None
    phases: PhaseTimes = PhaseTimes()
    retry: Json = field(default_factory=dict)
    telemetry: Json = field(default_factory=dict)
    history: tuple[HistoryRow, ...] = ()
    version: int = 0
    token: str = ""

    @property
    def search_began_at(self) -> datetime:
        """When it began to look for capacity: waiting for the plane's own limits is no search."""
        return self.admitted_at or self.accepted_at

    @property
    def live(self) -> tuple[Resource, ...]:
        """Rows whose resource has not been seen gone."""
        return tuple(row for row in self.resources if row.state is not ResourceState.GONE)

    def placement_of(self, row: Resource) -> Placement:
        """Return the plan's placement that a row stands for."""
        if row.place is not None:
            return self.plan.placements[row.place]
        here = (placement for placement in self.plan.placements if placement.location == row.location)
        return next(here, Placement(region=row.location, zone=None))

    def with_row(self, row: Resource) -> Job:
        """Return the job with the row of the same nonce and kind replaced, or the row appended."""
        rows = [row if (old.nonce, old.kind) == (row.nonce, row.kind) else old for old in self.resources]
        if row not in rows:
            rows.append(row)
        return replace(self, resources=tuple(rows))

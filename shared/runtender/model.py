"""The nouns: what a run, a job, a resource row and a marker are.

Everything here is a frozen value without behaviour beyond derived properties; the rules live in `decide`, the shapes on
the wire in `wire`. This module imports nothing of ours. Times are aware datetimes in UTC, durations timedeltas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

__all__ = [
    "Admission",
    "Block",
    "Cells",
    "Cleanup",
    "CleanupState",
    "Deadlines",
    "FamilyEntry",
    "HistoryRow",
    "Job",
    "JobPlan",
    "LedgerEntry",
    "Limits",
    "LiveLimit",
    "Machine",
    "Marker",
    "MarkerStatus",
    "Outcome",
    "Phase",
    "PhaseTimes",
    "Placement",
    "Reason",
    "Resource",
    "ResourceKind",
    "ResourceState",
    "Run",
    "Scope",
    "SubmitAction",
    "SubmitKind",
    "SubmitRequest",
    "Summary",
    "Timing",
    "Verdict",
    "Walk",
    "WalkPolicy",
    "Writer",
]  # fmt: skip

Json = Mapping[str, Any]


class Phase(StrEnum):
    """Where a job stands. A job is at rest only in DONE."""

    PENDING = "PENDING"
    PROVISIONING = "PROVISIONING"
    AWAITING_CAPACITY = "AWAITING_CAPACITY"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    DONE = "DONE"


class Outcome(StrEnum):
    """How a job ended. Decided once, never changed."""

    SUCCEEDED = "SUCCEEDED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    NO_CAPACITY = "NO_CAPACITY"


class Reason(StrEnum):
    """Why a job ended as it did: a stable word for queries and alerts."""

    COMPLETED = "Completed"
    SETTLED_BY_SUMMARY = "SettledBySummary"
    PARTIAL_CELLS = "PartialCells"
    EXIT_CODE = "ExitCode"
    OUT_OF_MEMORY = "OutOfMemory"
    IMAGE_PULL = "ImagePull"
    BOOT_TIMEOUT = "BootTimeout"
    GPU_DRIVER = "GpuDriver"
    REBOOTED = "Rebooted"
    STALLED = "Stalled"
    RUN_TIMEOUT = "RunTimeout"
    TTL_EXPIRED = "TtlExpired"
    PREEMPTED = "Preempted"
    HOST_ERROR = "HostError"
    WORKER_LOST = "WorkerLost"
    JOB_DELETED = "JobDeleted"
    UNSCHEDULABLE = "Unschedulable"
    FAILED_INDEXES = "FailedIndexes"
    HEAD_LOST = "HeadLost"
    WORKERS_MISSING = "WorkersMissing"
    CAPACITY_EXHAUSTED = "CapacityExhausted"
    CAPACITY_TIMEOUT = "CapacityTimeout"
    QUOTA_BLOCKED = "QuotaBlocked"
    CONFIG_FAULT = "ConfigFault"
    COST_CAP = "CostCap"
    CANCELLED = "Cancelled"
    INTERNAL = "Internal"


class ResourceKind(StrEnum):
    """What a resource row stands for; the value is also the `sf-kind` label."""

    VM = "vm"
    CLUSTER = "cluster"
    JOB = "job"
    SERVICE = "service"
    DEPLOYMENT = "deployment"
    RAYCLUSTER = "raycluster"


class ResourceState(StrEnum):
    """INTENDED: a create may be under way. CREATED: the API took it. DELETING: to be removed. GONE: seen absent."""

    INTENDED = "INTENDED"
    CREATED = "CREATED"
    DELETING = "DELETING"
    GONE = "GONE"


class CleanupState(StrEnum):
    """Is everything of a settled job gone? STUCK still retries; it only says that somebody should look."""

    NONE = "NONE"
    PENDING = "PENDING"
    STUCK = "STUCK"
    DONE = "DONE"


class Verdict(StrEnum):
    """What an API's refusal means for the walk (design: answers to creates)."""

    TRANSIENT_CAPACITY = "TRANSIENT_CAPACITY"
    HARD_CEILING = "HARD_CEILING"
    CONFIG_FAULT = "CONFIG_FAULT"
    RATE_LIMITED = "RATE_LIMITED"
    RETRY = "RETRY"
    ADOPT = "ADOPT"
    GONE = "GONE"


class Scope(StrEnum):
    """How far a verdict reaches."""

    ZONE = "zone"
    REGION = "region"
    PROJECT = "project"


class MarkerStatus(StrEnum):
    """RUNNING stands in started markers only, the other three in terminal markers only."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    INTERRUPTED = "INTERRUPTED"


class Admission(StrEnum):
    """Where a job stands with the plane's limits: before them, under them, or behind them."""

    WAITING = "waiting"
    LIVE = "live"
    LEFT = "left"


class Writer(StrEnum):
    """Who wrote a marker."""

    GUEST = "guest"
    BOOTSTRAP = "bootstrap"
    PLANE = "plane"


class SubmitAction(StrEnum):
    """What a message on the submit topic asks for."""

    SUBMIT = "submit"
    CANCEL = "cancel"
    RETRY = "retry"
    STEP = "step"


class SubmitKind(StrEnum):
    """A forecast has a run config, families and cells; a task is one plain container."""

    FORECAST = "forecast"
    TASK = "task"


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What the caller allows a run to take. None: the plane's default (for cost: no cap)."""

    capacity_wait: timedelta | None = None
    run: timedelta | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveLimit:
    """How much of a plane's jobs may be alive at once: of all, or of those with a label. None: as much as there is."""

    label: tuple[str, str] | None = None
    jobs: int | None = None
    vcpus: int | None = None
    gpus: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmitRequest:
    """A validated message of the submit topic. `config` is the JSON object as sent, `message_id` Pub/Sub's."""

    action: SubmitAction = SubmitAction.SUBMIT
    kind: SubmitKind = SubmitKind.FORECAST
    request_id: str
    message_id: str = ""
    published_at: datetime
    run_id: str | None = None
    job_key: str | None = None
    config: Json | None = None
    config_uri: str | None = None
    families: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    overrides: Mapping[str, Json] = field(default_factory=dict)
    force: bool = False
    every: timedelta | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    image: str | None = None
    package_uri: str | None = None
    entrypoint: str | None = None
    priority: int = 0
    requested_by: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """Another machine that can do a plan's work: of another series, or sold another way."""

    machine_type: str
    vcpus: int
    disk_type: str
    on_host_maintenance: str
    spot: bool = False

    @property
    def label(self) -> str:
        """`n2d-standard-8`, or `n2d-standard-8 spot`."""
        return f"{self.machine_type} spot" if self.spot else self.machine_type


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """One place to try: a zone of a region (zone None: the region's own choice) and the subnet to use there.

    `machine` None is the plan's own.
    """

    region: str
    zone: str | None
    subnetwork_uri: str = ""
    machine: Machine | None = None

    @property
    def machine_label(self) -> str:
        """The other machine's label; empty for the plan's own."""
        return self.machine.label if self.machine else ""

    @property
    def location(self) -> str:
        """The zone where there is one, else the region."""
        return self.zone or self.region

    @property
    def label(self) -> str:
        """`region/zone`, or `region/auto`; with the machine behind it where it is not the plan's own."""
        return f"{self.region}/{self.zone or 'auto'} {self.machine_label}".rstrip()


@dataclass(frozen=True, kw_only=True, slots=True)
class WalkPolicy:
    """How patiently capacity is looked for (spec: capacity policy). A bound of 0 is switched off.

    `preflight`: quota is looked at before each pass. `wait_for_quota`: a job waits for quota instead of ending without it.
    """

    max_attempts: int = 8
    max_wall: timedelta = timedelta(seconds=2700)
    max_passes: int = 0
    backoff: timedelta = timedelta(seconds=45)
    backoff_multiplier: float = 2.0
    backoff_max: timedelta = timedelta(seconds=300)
    preflight: bool = True
    wait_for_quota: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class JobPlan:
    """Everything needed to render the requests of one job, fixed when the run is accepted.

    `name` is the platform id (the VM or Job name). `cells_uri` and `logs_uri` are the job's folders; the placement's
    nonce is appended where a worker is told its own. `models` is empty for a task, `command` and `args` for a forecast.
    `vcpus` are the machine's, 0 where they are not known.
    """

    runtime: str
    kind: SubmitKind = SubmitKind.FORECAST
    name: str
    models: tuple[str, ...] = ()
    hardware: str = "cpu"
    gpu_type: str | None = None
    machine_type: str
    vcpus: int = 0
    accelerator_type: str = ""
    accelerator_count: int = 0
    spot: bool = False
    disk_type: str = "pd-balanced"
    boot_disk_gb: int = 100
    on_host_maintenance: str = "TERMINATE"
    worker_count: int = 1
    slot_cores: int = 1
    slots: int = 1
    shm_size_bytes: int = 0
    image_uri: str
    package_uri: str = ""
    config_uri: str = ""
    entrypoint: str = ""
    driver_args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    service_account: str = ""
    status_bucket: str
    cells_uri: str = ""
    logs_uri: str = ""
    source_table: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    placements: tuple[Placement, ...]
    walk: WalkPolicy = WalkPolicy()
    capacity_wait: timedelta
    run_limit: timedelta
    max_run_duration: timedelta
    expected_cells: int | None = None
    resource_plan: Json | None = None

    def at(self, placement: Placement) -> JobPlan:
        """Return the plan with the machine of one of its placements."""
        other = placement.machine
        if other is None:
            return self
        return replace(
            self,
            machine_type=other.machine_type,
            vcpus=other.vcpus,
            disk_type=other.disk_type,
            on_host_maintenance=other.on_host_maintenance,
            spot=other.spot,
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
    when it was let in.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class FamilyEntry:
    """A run header's view of a family: the state of its latest attempt."""

    job_key: str
    attempt: int
    phase: Phase
    outcome: Outcome | None = None
    reason: Reason | None = None
    cleanup: CleanupState = CleanupState.NONE


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """The header of a run. `status` is the word the spec's readers know, `outcome` the roll-up of all families."""

    run_id: str
    kind: SubmitKind
    request: Json
    labels: Mapping[str, str]
    requested_by: str
    families: Mapping[str, FamilyEntry]
    status: str
    outcome: Outcome | None = None
    created_at: datetime
    finished_at: datetime | None = None
    notified_at: datetime | None = None
    limits: Limits = Limits()
    telemetry: Json = field(default_factory=dict)
    cost: Json = field(default_factory=dict)
    version: int = 0
    token: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Marker:
    """What a marker object says, after validation. Job key and nonce come from its path, never from here.

    `recorded_at` is the storage server's creation time of the object: the only clock the plane trusts in a marker.
    """

    status: MarkerStatus
    writer: Writer
    exit_code: int | None = None
    detail: str = ""
    reason: Reason | None = None
    signal: str | None = None
    preempted: bool = False
    instance: str = ""
    zone: str = ""
    boot_at: datetime | None = None
    exec_start_at: datetime | None = None
    end_at: datetime | None = None
    execute_s: float | None = None
    log_uri: str = ""
    pod_uid: str = ""
    recorded_at: datetime
    body: Json = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """Every span the state machine waits for, in one place so that the local cloud can scale them all alike.

    Defaults and their reasons: design sections 3 and 4, schema settings.
    """

    hold: timedelta = timedelta(seconds=90)
    create_margin: timedelta = timedelta(seconds=40)
    http_timeout: timedelta = timedelta(seconds=30)
    resend_within: timedelta = timedelta(minutes=10)
    provision_wait: timedelta = timedelta(seconds=25)
    create_grace: timedelta = timedelta(seconds=180)
    boot_limit: timedelta = timedelta(seconds=1800)
    gpu_boot_minimum: timedelta = timedelta(minutes=15)
    watch_interval: timedelta = timedelta(seconds=600)
    orphan_grace: timedelta = timedelta(seconds=600)
    placement_block: timedelta = timedelta(seconds=1200)
    stall_grace: timedelta = timedelta(seconds=2700)
    lost_confirm: timedelta = timedelta(seconds=15)
    early_stop: timedelta = timedelta(seconds=60)
    tick: timedelta = timedelta(seconds=60)
    tick_budget: timedelta = timedelta(seconds=50)
    teardown_backoff: timedelta = timedelta(seconds=60)
    teardown_backoff_max: timedelta = timedelta(seconds=600)
    fence_margin: timedelta = timedelta(seconds=600)
    busy_wait: timedelta = timedelta(seconds=30)
    busy_wait_max: timedelta = timedelta(seconds=300)

"""A run's header, the markers of its workers, and the spans that the state machine waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from runtender.model.plan import Limits
from runtender.model.words import CleanupState, Json, MarkerStatus, Outcome, Phase, Reason, SubmitKind, Writer


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
    pod_check: timedelta = timedelta(seconds=120)
    pod_trouble: timedelta = timedelta(seconds=300)
    index_pause: timedelta = timedelta(seconds=10)

"""The closed sets of words that documents, messages and labels are written in."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

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

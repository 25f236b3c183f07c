"""What was seen of the world: the inputs of `decide` and the readings of the runtimes.

Only what was really seen stands here. A read that failed is no observation: it is `None`, never `Absent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from runtender.model import Block, Cells, Marker, Reason, Scope, Summary, Verdict


class LiveState(StrEnum):
    """A resource's state, whatever the platform calls it. ENDING and ENDED never come back to RUNNING."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    ENDING = "ENDING"
    ENDED = "ENDED"


class WorkersVerdict(StrEnum):
    """What a Job's own status says of all its workers together."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerSet:
    """The workers of a Job, by its own status. Indexes as Kubernetes writes them: `0,2-5`.

    `failed_reason` is the reason of the condition that failed it. `ready` counts pods whose containers run.
    """

    verdict: WorkersVerdict
    detail: str
    completions: int
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = ""
    failed_indexes: str = ""
    failed_reason: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Present:
    """A resource of the row's name is there. Labels tell whose it is; they are empty on a stranger's.

    `workers` is there for a resource that has many.
    """

    state: LiveState
    native_state: str
    uid: str
    nonce: str = ""
    key: str = ""
    plane: str = ""
    created_at: datetime | None = None
    stopped_at: datetime | None = None
    workers: WorkerSet | None = None


@dataclass(frozen=True, slots=True)
class Absent:
    """The API said 404. Absent is not gone while a create may still land."""


Sight = Present | Absent


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """An API's no, classified: what it means, how far it reaches, the code it was told by and the API's own words (cut).

    `zones_available` are zones that the answer itself recommends. `recognised` is false for an unknown code.
    """

    verdict: Verdict
    scope: Scope
    code: str
    message: str
    retry_after_s: float | None = None
    zones_available: tuple[str, ...] = ()
    recognised: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """The create was taken. `operation` is null where the platform creates at once."""

    operation: str | None = None
    target_id: str | None = None


@dataclass(frozen=True, slots=True)
class NameTaken:
    """409: something of that name is there; who owns it must be looked up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unclear:
    """No answer, or a 5xx: the create may have been taken."""

    detail: str


CreateAnswer = Accepted | NameTaken | Refusal | Unclear


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationSeen:
    """A long-running operation as read. `refusal` is set when it ended with an error."""

    done: bool
    target_id: str | None = None
    refusal: Refusal | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteAnswer:
    """`gone`: 404. `accepted`: under way. Neither: refused, with the reason; to be tried again."""

    accepted: bool = False
    gone: bool = False
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fate:
    """What the platform's own records say of a vanished worker. `reason` is null when they say nothing.

    `deleted` is true when the records hold any delete of it (ours, the guest's or a stranger's).
    """

    reason: Reason | None = None
    deleted: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkerPair:
    """The markers below one nonce. `terminal_stored` is true as soon as the object exists, readable or not."""

    started: Marker | None = None
    terminal: Marker | None = None
    terminal_stored: bool = False


class TroubleKind(StrEnum):
    """Why a pod does not start."""

    IMAGE_PULL = "IMAGE_PULL"
    CONFIG = "CONFIG"
    MOUNT = "MOUNT"
    UNSCHEDULABLE = "UNSCHEDULABLE"
    QUOTA = "QUOTA"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """What keeps pods from starting: in Kubernetes' own words, and since when."""

    kind: TroubleKind
    reason: str
    message: str
    since: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class PodSeen:
    """One pod. `index` is None outside an Indexed Job; `exit_code` None while its container has not ended."""

    name: str
    uid: str
    phase: str
    index: int | None = None
    exit_code: int | None = None
    out_of_memory: bool = False
    reason: str = ""
    disrupted: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PodsSeen:
    """A row's pods: when the first was given a node and the first container ran, and the gravest trouble of any that waits."""

    pods: tuple[PodSeen, ...] = ()
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    trouble: Trouble | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterFacts:
    """A cluster that stands, as far as a plan needs it. `name` is its short name, `full_name` the whole resource name.

    `server_minor` is the Kubernetes version 1.x; `machine_types` those of its node pools, which an Autopilot has none of.
    """

    name: str
    full_name: str
    location: str
    status: str
    has_endpoint: bool
    server_minor: int
    autopilot: bool = False
    machine_types: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """How much of a meter may be used, and is. None: not known."""

    limit: int | None = None
    usage: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """All that one step has seen. A key that is missing, or a None, was not read or could not be.

    `markers`, `sights`, `operations`, `pods`, `remains`, `fates`, `serials` and `summaries` are keyed by the row's nonce.
    `remains` are the names of things the row covers besides itself (a boot disk) that are still there; `serials` holds
    the terminal marker's bytes found on the serial console, or None when the console was read and has none.
    `predecessor_at_rest` says whether the attempts before this one have left nothing behind. `quota` holds the readings of
    each region's meters, by region and meter; what could not be read is missing there. `short` has the places that lately
    had no room for other jobs' machines of the same kind.
    """

    markers: Mapping[str, MarkerPair] = field(default_factory=dict)
    sights: Mapping[str, Sight] = field(default_factory=dict)
    operations: Mapping[str, OperationSeen] = field(default_factory=dict)
    remains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pods: Mapping[str, PodsSeen] = field(default_factory=dict)
    fates: Mapping[str, Fate] = field(default_factory=dict)
    serials: Mapping[str, bytes | None] = field(default_factory=dict)
    summaries: Mapping[str, Summary | None] = field(default_factory=dict)
    cells: Cells | None = None
    predecessor_at_rest: bool | None = None
    quota: Mapping[str, Mapping[str, Reading]] | None = None
    short: tuple[Block, ...] | None = None

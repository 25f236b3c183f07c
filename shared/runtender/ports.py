"""The seams between the plane and the world, as Protocols, and the plain values that cross them.

The engine knows these and nothing behind them. Google's adapters live in `gcp`, the local cloud's in `local`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from runtender.model import Job, Resource, ResourceKind
from runtender.observed import (
    CreateAnswer,
    DeleteAnswer,
    Fate,
    OperationSeen,
    PodsSeen,
    Present,
    Reading,
    Sight,
)
from runtender.settings import Settings

Document = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """A document as read: `stamp` is the store's own version of it, to be handed back as a precondition."""

    path: str
    data: Document
    stamp: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Create:
    """Write a document that must not exist yet."""

    path: str
    data: Document


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """Replace top-level `fields` and drop those named in `remove`, if the document still carries `stamp`.

    Fields that are not named stay as they are: a newer schema's fields survive an older writer.
    """

    path: str
    fields: Document
    stamp: Any
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Increment:
    """Add to numeric fields; the document is made where it does not exist. No precondition. `fields` are set beside them."""

    path: str
    amounts: Mapping[str, int]
    fields: Document = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Remove:
    """Delete a document, if it still carries `stamp`."""

    path: str
    stamp: Any


Write = Create | Update | Increment | Remove


class Store(Protocol):
    """Documents with compare-and-set. Paths are `collection/id` or `collection/id/sub/id`; values are JSON and datetimes."""

    def get(self, path: str) -> Snapshot | None:
        """Read one document, strongly consistent."""

    def commit(self, writes: Sequence[Write]) -> tuple[Any, ...]:
        """Carry out all writes or none; return the new stamp of each, an Increment's new sums by field, None for a Remove.

        Raises `Conflict` with the path (where known, else the first) when a precondition does not hold, `Retryable`
        when the store cannot be reached. The client may have retried: a Conflict can be the echo of our own success.
        """

    def due(self, now: datetime, limit: int) -> list[str]:
        """Return the job keys whose `wake_at` is at or before `now`, longest overdue first."""

    def find(self, collection: str, *, where: Mapping[str, Any] | None = None, order_by: str | None = None,
             descending: bool = False, limit: int = 100) -> list[Snapshot]:  # fmt: skip
        """Return documents of a collection whose top-level (or dotted) fields equal `where`; by path unless ordered.

        A collection below a document is named by its path (`jobs/{job_key}/history`).
        """

    def watch(self, path: str, seconds: float | None = None) -> Iterator[Snapshot | None]:
        """Yield the document now and at each change, in order, for at most `seconds`; None while it does not exist."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredObject:
    """An object's facts without its body. `created_at` is the server's time of this generation."""

    bucket: str
    name: str
    size: int
    generation: int
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectPage:
    """A listing in name order. `complete` is false when the bound cut it."""

    objects: tuple[StoredObject, ...]
    complete: bool = True


class Objects(Protocol):
    """Cloud Storage, as far as the plane needs it. Any failure but 404 and 412 raises `Retryable` (or `Rejected` on 401/403)."""

    def stat(self, bucket: str, name: str) -> StoredObject | None:
        """Read an object's facts; None when there is none."""

    def read(self, bucket: str, name: str, *, limit: int) -> bytes | None:
        """Read an object's body, at most `limit` bytes of it; None when there is none."""

    def list(self, bucket: str, prefix: str, *, limit: int) -> ObjectPage:
        """List objects below a prefix, all pages up to `limit` objects."""

    def create(self, bucket: str, name: str, body: bytes, *, content_type: str = "application/json") -> bool:
        """Write an object that must not exist; False when it does (nothing is changed then)."""

    def put(self, bucket: str, name: str, body: bytes, *, content_type: str = "application/json") -> None:
        """Write an object, replacing what is there."""


class Topics(Protocol):
    """Pub/Sub, publishing side."""

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str]) -> str:
        """Publish one message and return its id; `Retryable` when it was not taken."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A message pulled from a subscription: nobody else gets it until its acknowledgement deadline."""

    ack_id: str
    message_id: str
    body: bytes
    attributes: Mapping[str, str]
    published_at: datetime


class Subscriptions(Protocol):
    """Pub/Sub, reading side, for people: what waits to be pulled, and which topics there are.

    Raises `Retryable` when the service did not answer, `Rejected` for a subscription that is not there or may not be used.
    """

    def pull(self, subscription: str, limit: int) -> list[Held]:
        """Take what waits, at most `limit` messages; an empty list when nothing does."""

    def acknowledge(self, subscription: str, ack_ids: Sequence[str]) -> None:
        """Remove messages from the subscription for good."""

    def release(self, subscription: str, ack_ids: Sequence[str]) -> None:
        """Hand messages back, so that the next pull finds them again."""

    def has_topic(self, topic: str) -> bool:
        """True when there is such a topic."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiRequest:
    """One REST call, as pure modules describe it. `method_id` is Google's (`compute.instances.insert`): for permission
    tables, counting and logs. `path` follows the service's base and starts with `/`. `creates` marks calls that make
    something: they are never retried blindly. `cluster` is the full name of the cluster whose Kubernetes API is called
    (`projects/p/locations/l/clusters/c`); empty for Google's own services.
    """

    method_id: str
    verb: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Document | None = None
    creates: bool = False
    cluster: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiAnswer:
    """What came back. `status` 0: no answer (connection error or time-out; the call may have been taken).
    `body` is the parsed JSON object, `{}` when there is none. `retry_after_s` from the header.
    """

    status: int
    body: Document = field(default_factory=dict)
    text: str = ""
    retry_after_s: float | None = None

    @property
    def ok(self) -> bool:
        """True for 2xx."""
        return 200 <= self.status < 300


class Api(Protocol):
    """A Google REST API. Never raises for an HTTP status or a lost connection: the answer says it."""

    def send(self, request: ApiRequest) -> ApiAnswer:
        """Carry out one call with a time-out of 30 s (scaled locally); reads may be repeated within it on 5xx."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Meter:
    """Something that quota counts. `name` is Compute Engine's, `metric` and `dimension` are Service Usage's, which tells of
    those that Compute Engine does not. `everywhere`: it counts over all regions.
    """

    name: str
    metric: str
    dimension: tuple[str, str] | None = None
    everywhere: bool = False


class Quota(Protocol):
    """What the project may use and uses. Never raises: what cannot be read is missing from the answer."""

    def read(self, region: str, meters: Collection[Meter]) -> Mapping[str, Reading]:
        """Return the readings of a region's meters, and of those over all regions, by name."""


class Clock(Protocol):
    """Time and chance, so that a simulation can hold both."""

    def now(self) -> datetime:
        """Return the present moment, aware, UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait."""

    def token(self) -> str:
        """Draw a unique token of an invocation or write."""

    def jitter(self) -> float:
        """Draw a number in [0, 1)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Remain:
    """Something a resource row covers besides itself: how to look for it, and how to remove it.

    `is_list`: the look is a list, which says by having no `items` that nothing is there.
    """

    kind: str
    name: str
    look: ApiRequest
    delete: ApiRequest
    is_list: bool = False


class Runtime(Protocol):
    """One runtime's pure knowledge: nouns to requests, answers to observations. No I/O, no clock.

    A reading returns None when the answer is no observation (401, 403, 429, 5xx, no answer).
    """

    name: str
    kind: ResourceKind

    def create(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        """Describe the call that makes the row's resource. The same row always gives the same request."""

    def created(self, answer: ApiAnswer) -> CreateAnswer:
        """Read the answer to `create`."""

    def describe(self, job: Job, row: Resource, settings: Settings) -> Mapping[str, Any]:
        """Return the telemetry of a placement: what it is to be, and the handle by which others find it."""

    def operation(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        """Describe the look at the row's pending operation."""

    def operated(self, answer: ApiAnswer) -> OperationSeen | None:
        """Read it. A 404 counts as done: the resource itself tells the rest."""

    def look(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        """Describe the look at the resource itself, by name."""

    def looked(self, answer: ApiAnswer) -> Sight | None:
        """Read it."""

    def delete(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        """Describe its removal."""

    def deleted(self, answer: ApiAnswer) -> DeleteAnswer:
        """Read the answer to any delete of this runtime."""

    def remains(self, job: Job, row: Resource, settings: Settings) -> tuple[Remain, ...]:
        """Name what else the row covers."""

    def fate(self, job: Job, row: Resource, settings: Settings) -> ApiRequest | None:
        """Describe the look into the platform's records about a vanished worker; None where it keeps none."""

    def fated(self, row: Resource, answers: Sequence[ApiAnswer]) -> Fate | None:
        """Read all pages of it (none where it keeps none); None when a page could not be read or the list is partial."""

    def serial(self, job: Job, row: Resource, settings: Settings) -> ApiRequest | None:
        """Describe the look at the worker's last words where the platform keeps them."""

    def last_words(self, answer: ApiAnswer, row: Resource) -> bytes | None:
        """Return the terminal marker's JSON printed on the console for this row's nonce, None when there is none."""

    def fleets(self, settings: Settings, clusters: Sequence[str]) -> tuple[ApiRequest, ...]:
        """Describe the lists of all this plane's workers: over the project, or one per cluster (full names).

        Each is the first page; the caller adds the next page's token as `page_key`.
        """

    def fleet_page(self, answer: ApiAnswer) -> FleetPage | None:
        """Read one page; None when it could not be read."""

    page_key: str


@runtime_checkable
class Podded(Protocol):
    """What a runtime of many workers knows beside a `Runtime`: its pods, and what they said."""

    def pods(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        """Describe the list of the row's pods (one page; `continue` is added by the caller)."""

    def events(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        """Describe the list of the warnings in the row's namespace about the row's resource and pods."""

    def podded(self, row: Resource, pods: Sequence[ApiAnswer], events: ApiAnswer) -> PodsSeen | None:
        """Read all pages of the pods, and the warnings; None when a page of the pods could not be read."""

    def pod_log(self, job: Job, row: Resource, pod: str, settings: Settings) -> ApiRequest:
        """Describe the look at the end of one pod's log; the answer's `text` has it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sighted:
    """A worker in the fleet list. `cluster` is the full name of the one it runs on, empty for a VM."""

    name: str
    location: str
    sight: Present
    cluster: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetPage:
    """One page of the fleet list. `partial` says that some place did not answer, so nothing may be concluded from absence."""

    workers: tuple[Sighted, ...]
    next_page: str | None = None
    partial: bool = False

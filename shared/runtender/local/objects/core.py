"""Cloud Storage's JSON API as a core: a request and the moment in, a response out, no transport, no clock.

Generations grow strictly, preconditions hold on every call and every way of uploading, and a finalized object
is published to the topics that its bucket notifies. Workers' tokens may create and read but not delete, hence
not overwrite, as the plane's IAM grants them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from runtender.local.http import Faults, HttpRequest, HttpResponse, google_error, json_response, no_faults
from runtender.local.objects.answers import (
    Refused,
    bucket_exists,
    invalid,
    may_not_delete,
    no_such_bucket,
    no_such_object,
    own_address,
)
from runtender.local.objects.bodies import Bodies, MemoryBodies
from runtender.local.objects.conditions import Preconditions
from runtender.local.objects.listing import list_page
from runtender.local.objects.notices import notice_attributes, notice_body
from runtender.local.objects.reading import media_response
from runtender.local.objects.resumable import Sessions
from runtender.local.objects.uploads import Upload, metadata_of, multipart_upload, plain_upload
from runtender.local.objects.versions import Bucket, Notification, ObjectVersion

METHODS = (
    "storage.buckets.get",
    "storage.buckets.insert",
    "storage.objects.delete",
    "storage.objects.get",
    "storage.objects.insert",
    "storage.objects.list",
)
"""The ids of the methods that are simulated."""

Publish = Callable[[str, bytes, Mapping[str, str], datetime], object]
"""Takes a topic, a body, attributes and the moment, like `TopicsCore.publish`."""

# The simulated metadata server hands every VM a token of this kind; nobody else has one.
_WORKER_TOKEN = "Bearer local-worker-"  # noqa: S105


class OverwriteAnswer(StrEnum):
    """What a worker hears that creates an object twice; Google does not say which it checks first."""

    PRECONDITION_FAILED = "412"
    PERMISSION_DENIED = "403"


def _publish_nothing(_topic: str, _body: bytes, _attributes: Mapping[str, str], _now: datetime) -> None:
    """Stand in for a dispatcher where nobody listens."""


class ObjectsCore:
    """The service's whole state and its calls. Not thread-safe: one caller at a time."""

    def __init__(
        self,
        *,
        bodies: Bodies | None = None,
        on_finalize: Publish = _publish_nothing,
        faults: Faults = no_faults,
        overwrite_answer: OverwriteAnswer = OverwriteAnswer.PRECONDITION_FAILED,
    ) -> None:
        self._bodies = bodies or MemoryBodies()
        self._publish = on_finalize
        self._faults = faults
        self._overwrite_answer = overwrite_answer
        self._buckets: dict[str, Bucket] = {}
        self._sessions = Sessions()
        self._last_generation = 0
        self._counts: Counter[str] = Counter()

    def make_bucket(self, name: str, now: datetime, notifications: Iterable[Notification] = ()) -> None:
        """Make a bucket that tells `notifications`; one that is there gets these and keeps its objects."""
        known = self._buckets.get(name)
        self._buckets[name] = Bucket(
            name=name,
            created_at=known.created_at if known else now,
            notifications=tuple(notifications),
            live=known.live if known else {},
        )

    def counts(self) -> dict[str, int]:
        """Return how often each API method was called (`storage.objects.insert`), whatever its answer."""
        return dict(self._counts)

    def handle(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer one call."""
        route = _route(request)
        if route is None:
            return _no_method(request)
        method_id, parameters = route
        self._counts[method_id] += 1
        fault = self._faults(method_id, request)
        if fault is not None and not fault.applied:
            return fault.answer
        answer = self._answer(method_id, request, parameters, now)
        return fault.answer if fault is not None else answer

    def apply(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer one call that no client made: uncounted, and undisturbed by faults."""
        route = _route(request)
        return _no_method(request) if route is None else self._answer(route[0], request, route[1], now)

    def _answer(
        self, method_id: str, request: HttpRequest, parameters: tuple[str, ...], now: datetime
    ) -> HttpResponse:
        try:
            return self._carry_out(method_id, request, parameters, now)
        except Refused as refusal:
            return refusal.answer

    def _carry_out(
        self, method_id: str, request: HttpRequest, parameters: tuple[str, ...], now: datetime
    ) -> HttpResponse:
        match method_id, parameters:
            case "storage.buckets.insert", ():
                return self._insert_bucket(request, now)
            case "storage.buckets.get", (bucket,):
                return json_response(200, self._bucket(bucket).resource())
            case "storage.objects.list", (bucket,):
                return json_response(
                    200, list_page(self._bucket(bucket).live, request.query, own_address(request))
                )
            case "storage.objects.get", (bucket, name):
                return self._get(request, self._version(bucket, name, request.query))
            case "storage.objects.delete", (bucket, name):
                return self._delete(request, self._version(bucket, name, request.query))
            case "storage.objects.insert", (bucket,):
                return self._insert(request, self._bucket(bucket), now)
        raise AssertionError(f"route without a method: {method_id}")

    def _bucket(self, name: str) -> Bucket:
        if name not in self._buckets:
            raise no_such_bucket()
        return self._buckets[name]

    def _version(self, bucket: str, name: str, query: Mapping[str, str]) -> ObjectVersion:
        version = self._bucket(bucket).live.get(name)
        wanted = query.get("generation")
        if version is None or (wanted is not None and wanted != str(version.generation)):
            raise no_such_object(bucket, name)
        return version

    def _insert_bucket(self, request: HttpRequest, now: datetime) -> HttpResponse:
        name = str(metadata_of(request.body).get("name", ""))
        if name in self._buckets:
            raise bucket_exists()
        self.make_bucket(name, now)
        return json_response(200, self._buckets[name].resource())

    def _get(self, request: HttpRequest, version: ObjectVersion) -> HttpResponse:
        Preconditions.of(request.query).check_read(version)
        if request.query.get("alt") == "media":
            return media_response(version, self._bodies.read(version.generation), request.headers)
        return json_response(200, version.resource(own_address(request)), {"ETag": version.etag})

    def _delete(self, request: HttpRequest, version: ObjectVersion) -> HttpResponse:
        Preconditions.of(request.query).check_write(version)
        if worker := _worker(request):
            raise may_not_delete(worker, version.bucket, version.name)
        del self._buckets[version.bucket].live[version.name]
        self._bodies.forget(version.generation)
        return HttpResponse(status=204)

    def _insert(self, request: HttpRequest, bucket: Bucket, now: datetime) -> HttpResponse:
        match request.query.get("uploadType"):
            case "media":
                upload, body = plain_upload(request), request.body
            case "multipart":
                upload, body = multipart_upload(request)
            case "resumable":
                return self._insert_in_pieces(request, bucket, now)
            case other:
                raise invalid(f"Invalid uploadType: {other!r}.")
        return json_response(200, self._store(bucket, upload, body, request, now))

    def _insert_in_pieces(self, request: HttpRequest, bucket: Bucket, now: datetime) -> HttpResponse:
        if request.method == "POST":
            session = self._sessions.begin(request)
            self._check_insert(bucket, session.upload, _worker(request))
            return self._sessions.location(request, session)
        session = self._sessions.resume(request)
        if session.complete and session.resource is None:
            body = bytes(session.received)
            session.resource = self._store(bucket, session.upload, body, request, now)
        return self._sessions.progress(session)

    def _check_insert(self, bucket: Bucket, upload: Upload, worker: str) -> None:
        live = bucket.live.get(upload.name)
        forbidden = bool(worker) and live is not None
        if forbidden and self._overwrite_answer is OverwriteAnswer.PERMISSION_DENIED:
            raise may_not_delete(worker, bucket.name, upload.name)
        upload.preconditions.check_write(live)
        if forbidden:
            raise may_not_delete(worker, bucket.name, upload.name)

    def _store(
        self, bucket: Bucket, upload: Upload, body: bytes, request: HttpRequest, now: datetime
    ) -> dict[str, Any]:
        self._check_insert(bucket, upload, _worker(request))
        upload.check_body(body)
        # Two uploads of one microsecond are two generations all the same.
        self._last_generation = max(self._last_generation + 1, int(now.timestamp() * 1_000_000))
        version = upload.version(bucket.name, self._last_generation, body, now)
        self._bodies.keep(version.generation, body)
        replaced = bucket.live.get(upload.name)
        bucket.live[upload.name] = version
        if replaced is not None:
            self._bodies.forget(replaced.generation)
        resource = version.resource(own_address(request))
        for number, notification in enumerate(bucket.notifications, start=1):
            if version.name.startswith(notification.prefix):
                attributes = notice_attributes(version, number, replaced)
                self._publish(notification.topic, notice_body(resource), attributes, now)
        return resource


_COLLECTION_METHODS = {
    ("GET", "storage"): "storage.objects.list",
    ("POST", "upload"): "storage.objects.insert",
    ("PUT", "upload"): "storage.objects.insert",
}
_OBJECT_METHODS = {
    ("GET", "storage"): "storage.objects.get",
    ("GET", "download"): "storage.objects.get",
    ("DELETE", "storage"): "storage.objects.delete",
}


def _no_method(request: HttpRequest) -> HttpResponse:
    return google_error(404, "notFound", f"no method at {request.method} {request.path}")


def _route(request: HttpRequest) -> tuple[str, tuple[str, ...]] | None:
    """Return the API method a request calls, and the names in its path; None when there is no such method."""
    path = request.segments
    service = path[0]
    if service in {"upload", "download"}:
        path = path[1:]
    match path:
        case ("storage", "v1", "b") if (request.method, service) == ("POST", "storage"):
            return "storage.buckets.insert", ()
        case ("storage", "v1", "b", bucket) if (request.method, service) == ("GET", "storage"):
            return "storage.buckets.get", (bucket,)
        case ("storage", "v1", "b", bucket, "o"):
            method_id = _COLLECTION_METHODS.get((request.method, service))
            return (method_id, (bucket,)) if method_id else None
        case ("storage", "v1", "b", bucket, "o", name):
            method_id = _OBJECT_METHODS.get((request.method, service))
            return (method_id, (bucket, name)) if method_id else None
    return None


def _worker(request: HttpRequest) -> str:
    """Return the worker's name when the caller is one, else an empty string."""
    authorization = request.headers.get("Authorization", "")
    if not authorization.startswith(_WORKER_TOKEN):
        return ""
    return authorization.removeprefix("Bearer ")

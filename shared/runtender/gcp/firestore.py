"""The Store port on Firestore.

One batch of preconditioned writes is one commit; a document's stamp is its `update_time`. Unlike the embedded store,
Firestore keeps that time where a write changes nothing, so two writers of equal fields would both win: whoever relies
on compare-and-set writes something unique (`jobs` and `runs` carry `version` and `token` for it).
FIRESTORE_EMULATOR_HOST is honoured, as the client does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, assert_never

from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.auth.exceptions import GoogleAuthError
from google.cloud import firestore
from google.cloud.firestore_v1.types import Value, WriteResult
from google.cloud.firestore_v1.watch import Watch

from runtender.errors import Conflict, Rejected, Retryable
from runtender.gcp.documents import check_size, checked, collection_of
from runtender.ports import Create, Document, Increment, Remove, Snapshot, Update, Write

_Fetched = firestore.DocumentSnapshot[firestore.DocumentReference]

METHODS = (
    "firestore.projects.databases.documents.batchGet",
    "firestore.projects.databases.documents.commit",
    "firestore.projects.databases.documents.runQuery",
)
"""Every API method that an entry point calls here: what the plane needs permission for. `watch` is for people."""

_JOBS = "jobs"
_TRY_S = 10.0
# Seconds inside one call; minutes are left to redelivery and `wake_at`.
_PATIENCE = timedelta(seconds=20)
_READ_AGAIN = (exceptions.DeadlineExceeded, exceptions.InternalServerError, exceptions.ServiceUnavailable)
# Not after a time-out: by then the first try may have been carried out, which only the caller can tell.
_COMMIT_AGAIN = (exceptions.ResourceExhausted, exceptions.ServiceUnavailable)
# How Firestore says that a precondition does not hold; Aborted is its word for writes that got in each other's way.
_REFUSED = (exceptions.Aborted, exceptions.AlreadyExists, exceptions.FailedPrecondition, exceptions.NotFound)
_DROPPED = firestore.DELETE_FIELD
# How long a watch trusts a silent listener: a stream can end, or stall, without a word.
_LOOK_AGAIN_S = 5.0


class FirestoreStore:
    """A store in one Firestore database."""

    def __init__(self, project: str, database: str | None = None, *, patience: timedelta = _PATIENCE) -> None:
        """Use `database` of `project` (None: its default one); `patience` bounds a call with all its repeats.

        Raises `google.auth.exceptions.DefaultCredentialsError` where there are none.
        """
        self._client = firestore.Client(project=project, database=database)
        self._read_again = _repeats(_READ_AGAIN, patience)
        self._commit_again = _repeats(_COMMIT_AGAIN, patience)

    def get(self, path: str) -> Snapshot | None:
        collection_of(path)
        with _read(path):
            document = self._client.document(path).get(retry=self._read_again, timeout=_TRY_S)
        return _snapshot(document)

    def commit(self, writes: Sequence[Write]) -> tuple[Any, ...]:
        batch = self._client.batch()
        for write in writes:
            self._add(batch, write)
        with _committed(writes):
            results = batch.commit(retry=self._commit_again, timeout=_TRY_S)
        return tuple(_answer(write, result) for write, result in zip(writes, results, strict=True))

    def due(self, now: datetime, limit: int) -> list[str]:
        query = (
            self._client.collection(_JOBS)
            .where(filter=firestore.FieldFilter("wake_at", "<=", now))
            .order_by("wake_at")
            .limit(limit)
            # Of each job its id only: the step reads the document anew.
            .select([])
        )
        with _read(_JOBS):
            return [document.id for document in query.stream(retry=self._read_again, timeout=_TRY_S)]

    def find(
        self,
        collection: str,
        *,
        where: Mapping[str, Any] | None = None,
        order_by: str | None = None,
        descending: bool = False,
        limit: int = 100,
    ) -> list[Snapshot]:
        direction = firestore.Query.DESCENDING if descending else firestore.Query.ASCENDING
        ordered_by = "__name__" if order_by is None else _dotted(order_by)
        query = self._client.collection(collection).order_by(ordered_by, direction=direction).limit(limit)
        for field, value in (where or {}).items():
            query = query.where(filter=firestore.FieldFilter(_dotted(field), "==", value))
        with _read(collection):
            found = [_snapshot(document) for document in query.stream(retry=self._read_again, timeout=_TRY_S)]
        return [snapshot for snapshot in found if snapshot is not None]

    def watch(self, path: str, seconds: float | None = None) -> Iterator[Snapshot | None]:
        end = None if seconds is None else time.monotonic() + seconds
        news = threading.Event()
        seen: object = object()
        listener = _Listener.told(self._client.document(path), news)
        try:
            while True:
                # The listener only says when to look: what is read is in order, and its silence costs time alone.
                news.clear()
                snapshot = self.get(path)
                stamp = None if snapshot is None else snapshot.stamp
                if stamp != seen:
                    seen = stamp
                    yield snapshot
                left = _LOOK_AGAIN_S if end is None else min(_LOOK_AGAIN_S, end - time.monotonic())
                if left <= 0:
                    return
                news.wait(left)
                if not listener.is_active:
                    listener.close()
                    listener = _Listener.told(self._client.document(path), news)
        finally:
            listener.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()  # type: ignore[no-untyped-call]

    def _add(self, batch: firestore.WriteBatch, write: Write) -> None:
        collection_of(write.path)
        reference = self._client.document(write.path)
        match write:
            case Create():
                batch.create(reference, _sendable(write.path, write.data))
            case Update():
                fields = {**_sendable(write.path, write.fields), **dict.fromkeys(write.remove, _DROPPED)}
                quoted = {_quoted(name): value for name, value in fields.items()}
                batch.update(reference, quoted, self._client.write_option(last_update_time=write.stamp))
            case Increment():
                sums = {name: firestore.Increment(amount) for name, amount in write.amounts.items()}
                batch.set(reference, {**_sendable(write.path, write.fields), **sums}, merge=True)
            case Remove():
                batch.delete(reference, self._client.write_option(last_update_time=write.stamp))
            case _:
                assert_never(write)


def _answer(write: Write, result: WriteResult) -> Any:
    match write:
        case Remove():
            return None
        case Increment():
            # The client sends the sums in the order of their names, and so they come back.
            return dict(zip(sorted(write.amounts), map(_number, result.transform_results), strict=False))
        case _:
            return result.update_time


def _number(value: Value) -> int | float:
    return value.double_value if "double_value" in value else value.integer_value


def _repeats(errors: tuple[type[Exception], ...], patience: timedelta) -> Retry:
    return Retry(
        predicate=if_exception_type(*errors), initial=0.1, maximum=2.0, timeout=patience.total_seconds()
    )


class _Listener(Watch):
    """The client's listener, less the exception that it raises in a thread of its own when its stream ends.

    It would land on the user's terminal; `is_active` tells of the end as well.
    """

    @classmethod
    def told(cls, reference: firestore.DocumentReference, news: threading.Event) -> _Listener:
        """Listen to a document and set `news` at each change."""
        listener: _Listener = cls.for_document(  # type: ignore[no-untyped-call]
            reference, lambda *_change: news.set(), firestore.DocumentSnapshot
        )
        return listener

    def close(self, reason: object = None) -> None:  # noqa: ARG002 - what it would raise
        super().close()  # type: ignore[no-untyped-call]


def _sendable(path: str, fields: Document) -> dict[str, Any]:
    data = checked(path, fields)
    check_size(path, data)
    return data


def _quoted(*names: str) -> str:
    return firestore.Client.field_path(*names)


def _dotted(field: str) -> str:
    return _quoted(*field.split("."))


def _snapshot(document: _Fetched) -> Snapshot | None:
    if not document.exists:
        return None
    return Snapshot(path=document.reference.path, data=_plain(document.to_dict()), stamp=document.update_time)


def _plain(value: Any) -> Any:
    """Return a read value with the client's own kind of datetime made a plain one."""
    match value:
        case datetime():
            return datetime.combine(value.date(), value.timetz())
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case _:
            return value


@contextmanager
def _read(what: str) -> Iterator[None]:
    try:
        yield
    except (exceptions.GoogleAPIError, GoogleAuthError) as error:
        raise Retryable(f"cannot read {what} from Firestore now: {error}") from error


@contextmanager
def _committed(writes: Sequence[Write]) -> Iterator[None]:
    paths = ", ".join(write.path for write in writes)
    try:
        yield
    except exceptions.InvalidArgument as error:
        raise Rejected.because(paths, f"Firestore does not take the write: {error}") from error
    except _REFUSED as error:
        conflict = _conflict(writes, error)
        raise conflict or Retryable(f"cannot write {paths} to Firestore now: {error}") from error
    except (exceptions.GoogleAPIError, GoogleAuthError) as error:
        raise Retryable(f"cannot write {paths} to Firestore now: {error}") from error


def _conflict(writes: Sequence[Write], error: exceptions.GoogleAPICallError) -> Conflict | None:
    """Return the conflict that a refused batch means; None where no precondition can have caused it."""
    conditioned = [write.path for write in writes if not isinstance(write, Increment)]
    # The error names the document in its text, if at all; of jobs/a and jobs/ab the longer one is meant.
    named = sorted((path for path in conditioned if path in str(error)), key=len)
    if isinstance(error, exceptions.NotFound) and not named:
        # Not the document is missing but the database.
        return None
    return Conflict((named[-1:] or conditioned)[0]) if conditioned else None

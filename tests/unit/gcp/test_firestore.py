"""What Firestore's refusals become, told by a server that refuses over a real connection.

What the store does when all is well stands in the contract suite.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from google.cloud.firestore_v1.types import (
    BatchGetDocumentsRequest,
    BatchGetDocumentsResponse,
    CommitResponse,
    WriteResult,
)

from runtender.errors import Conflict, Rejected, Retryable
from runtender.gcp.firestore import FirestoreStore
from runtender.ports import Create, Increment, Remove, Update

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FAILED = grpc.StatusCode.FAILED_PRECONDITION
DOCUMENTS = "projects/p-1/databases/(default)/documents"


@dataclass
class RefusingFirestore:
    """Refuses each call with the next of `refusals`, and takes it when there are none left."""

    refusals: list[tuple[Any, str]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def handlers(self) -> Any:
        """Return what a gRPC server needs to serve this."""
        methods = {
            "Commit": grpc.unary_unary_rpc_method_handler(self._commit),
            "BatchGetDocuments": grpc.unary_stream_rpc_method_handler(self._get),
            "RunQuery": grpc.unary_stream_rpc_method_handler(self._refuse),
            "Listen": grpc.stream_stream_rpc_method_handler(self._end_stream),
        }
        return grpc.method_handlers_generic_handler("google.firestore.v1.Firestore", methods)

    def _refuse(self, _request: object, call: Any) -> Any:
        self.calls.append("read")
        call.abort(*self.refusals.pop(0))

    def _end_stream(self, _requests: object, call: Any) -> Any:
        self.calls.append("listen")
        call.abort(FAILED, "no listener is welcome")

    def _get(self, request: bytes, call: Any) -> Any:
        if self.refusals:
            self._refuse(request, call)
        (name,) = BatchGetDocumentsRequest.deserialize(request).documents
        yield BatchGetDocumentsResponse.serialize(BatchGetDocumentsResponse(missing=name, read_time=NOW))

    def _commit(self, _request: bytes, call: Any) -> Any:
        self.calls.append("commit")
        if self.refusals:
            call.abort(*self.refusals.pop(0))
        return CommitResponse.serialize(CommitResponse(write_results=[WriteResult(update_time=NOW)]))


@pytest.fixture
def remote(monkeypatch):
    service = RefusingFirestore()
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool, handlers=[service.handlers()])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", f"127.0.0.1:{port}")
        yield service
        server.stop(None).wait()


@pytest.fixture
def store(remote):
    store = FirestoreStore("p-1", patience=timedelta(seconds=0.3))
    yield store
    store.close()


CREATE = Create(path="jobs/a", data={"n": 1})
UPDATE = Update(path="runs/b", fields={"n": 2}, stamp=NOW)
REMOVE = Remove(path="jobs/ab", stamp=NOW)
INCREMENT = Increment(path="budget/c", amounts={"n": 1})

STALE = "the stored version (2) does not match the required base version (1)"


@pytest.mark.parametrize(
    ("writes", "code", "words", "path"),
    [
        pytest.param(
            [INCREMENT, UPDATE, REMOVE], FAILED, STALE, "runs/b", id="not named: the first that has one"
        ),
        pytest.param(
            [CREATE, UPDATE, REMOVE],
            grpc.StatusCode.NOT_FOUND,
            f"No document to update: {DOCUMENTS}/runs/b",
            "runs/b",
            id="gone, and named",
        ),
        pytest.param(
            [CREATE, REMOVE],
            grpc.StatusCode.ALREADY_EXISTS,
            f"Document already exists: {DOCUMENTS}/jobs/ab",
            "jobs/ab",
            id="named, and its path begins like another's",
        ),
        pytest.param([UPDATE], grpc.StatusCode.ABORTED, "Too much contention", "runs/b", id="contended"),
    ],
)
def test_a_precondition_that_does_not_hold_is_a_conflict_of_its_document(
    store, remote, writes, code, words, path
):
    remote.refusals = [(code, words)]
    with pytest.raises(Conflict) as conflict:
        store.commit(writes)
    assert conflict.value.path == path
    assert remote.calls == ["commit"]


@pytest.mark.parametrize(
    ("writes", "code", "words"),
    [
        pytest.param(
            [UPDATE],
            grpc.StatusCode.NOT_FOUND,
            "The database (default) does not exist for project p-1",
            id="no such database",
        ),
        pytest.param(
            [INCREMENT], grpc.StatusCode.ABORTED, "Too much contention", id="contended, no precondition"
        ),
        pytest.param([CREATE], grpc.StatusCode.PERMISSION_DENIED, "Missing permissions", id="denied"),
        pytest.param([CREATE], grpc.StatusCode.INTERNAL, "Internal error", id="their fault"),
        pytest.param(
            [CREATE], grpc.StatusCode.DEADLINE_EXCEEDED, "Too late", id="too late: it may have been done"
        ),
    ],
)
def test_a_commit_that_failed_without_a_conflict_is_left_for_later(store, remote, writes, code, words):
    remote.refusals = [(code, words)]
    with pytest.raises(Retryable, match=rf"cannot write {writes[0].path} to Firestore now: .*{words[:10]}"):
        store.commit(writes)
    assert remote.calls == ["commit"]


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_a_commit_is_repeated_while_firestore_cannot_be_reached(store, remote, code):
    remote.refusals = [(code, "later"), (code, "later")]
    assert store.commit([CREATE]) == (NOW,)
    assert len(remote.calls) == 3


def test_a_commit_is_given_up_when_its_time_is_over(store, remote):
    remote.refusals = [(grpc.StatusCode.UNAVAILABLE, "later")] * 1000
    with pytest.raises(Retryable, match="jobs/a"):
        store.commit([CREATE])


def test_a_write_that_firestore_does_not_take_is_rejected_in_its_words(store, remote):
    remote.refusals = [(grpc.StatusCode.INVALID_ARGUMENT, "maximum entity size is 1048576 bytes")]
    with pytest.raises(Rejected, match=r"runs/b: Firestore does not take the write: .*maximum entity size"):
        store.commit([UPDATE])


READS: dict[str, Callable[[FirestoreStore], Any]] = {
    "get": lambda store: store.get("jobs/a"),
    "due": lambda store: store.due(NOW, 10),
    "find": lambda store: store.find("runs", where={"outcome": None}),
    "watch": lambda store: next(store.watch("runs/a")),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize(
    "code", [FAILED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.ABORTED]
)
def test_a_read_that_failed_is_left_for_later(store, remote, read, code):
    remote.refusals = [(code, "The query requires an index")]
    with pytest.raises(Retryable, match=r"from Firestore now: .*requires an index"):
        read(store)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_is_given_up_when_its_time_is_over(store, remote, read):
    remote.refusals = [(grpc.StatusCode.UNAVAILABLE, "later")] * 1000
    with pytest.raises(Retryable, match="later"):
        read(store)
    assert len(remote.calls) > 1


def test_a_watch_goes_on_without_its_listener_until_the_store_is_out_of_reach(store, remote):
    changes = store.watch("runs/a")
    assert next(changes) is None
    remote.refusals = [(grpc.StatusCode.PERMISSION_DENIED, "locked out")]
    with pytest.raises(Retryable, match="locked out"):
        next(changes)
    assert "listen" in remote.calls

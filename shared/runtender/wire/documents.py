"""Runs, jobs and request rows <-> their documents, and the paths they live at.

A job keeps its newest history and ledger rows in its own document; older ones spill into blocks below it in the same
commit, so that no document grows without bound (Firestore's limit is 1 MiB).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from runtender.errors import Retryable, RuntenderError
from runtender.model import Job, Run
from runtender.ports import Create, Snapshot, Update, Write
from runtender.wire.codec import decode, encode, encode_changes

T = TypeVar("T")

SCHEMA = 1
HISTORY_KEPT = 100
LEDGER_KEPT = 200
_SPILL = 50
# Only jobs that are to be looked at have the one, only those that wait for admission the other.
_ORDERING = ("wake_at", "queue_at")
# Settled documents are removed by the database's own TTL policy on this field after this long.
_SPILL_EXPIRY = timedelta(days=400)


class Unreadable(RuntenderError):
    """A stored document is not what it should be: somebody else's hand, or a bug. It is left as it is."""


def run_path(run_id: str) -> str:
    """Path of a run header."""
    return f"runs/{run_id}"


def job_path(job_key: str) -> str:
    """Path of a job."""
    return f"jobs/{job_key}"


def request_path(document_id: str) -> str:
    """Path of a request row."""
    return f"requests/{document_id}"


def job_to_document(job: Job) -> dict[str, Any]:
    """Return the job's document; what orders a query is absent where it is null, so that the query needs no other index."""
    document = {"schema": SCHEMA, **encode(job)}
    return {key: value for key, value in document.items() if value is not None or key not in _ORDERING}


def job_from_document(data: Mapping[str, Any]) -> Job:
    """Read a job; `Retryable` when a newer schema wrote it (an older plane must not touch it)."""
    _check_schema(data, f"job {data.get('job_key')!r}")
    return _decoded(Job, {"wake_at": None, **data}, f"job {data.get('job_key')!r}")


def run_to_document(run: Run) -> dict[str, Any]:
    """Return the run header's document."""
    return {"schema": SCHEMA, **encode(run)}


def run_from_document(data: Mapping[str, Any]) -> Run:
    """Read a run header; `Retryable` when a newer schema wrote it."""
    _check_schema(data, f"run {data.get('run_id')!r}")
    return _decoded(Run, data, f"run {data.get('run_id')!r}")


def job_update(job: Job, before: Snapshot, now: datetime, *, was: Job | None = None) -> list[Write]:
    """Return the writes that move a job's document from `before` to `job`: only what changed, spilling what is old.

    `was` is the job that was read from `before`, where the caller has it: most of the job is still the very same.
    """
    kept, spilled = _spill(job, now)
    current = was is not None and before.data.get("schema") == SCHEMA
    document = {"schema": SCHEMA, **(encode_changes(kept, was) if current else encode(kept))}
    gone = {key for key in _ORDERING if key in document and document[key] is None}
    fields = {
        key: value
        for key, value in document.items()
        if key not in gone and before.data.get(key, _MISSING) != value
    }
    remove = tuple(key for key in _ORDERING if key in gone and key in before.data)
    return [*spilled, Update(path=before.path, fields=fields, stamp=before.stamp, remove=remove)]


def run_update(run: Run, before: Snapshot) -> Update:
    """Return the write that moves a run header from `before` to `run`."""
    document = run_to_document(run)
    fields = {key: value for key, value in document.items() if before.data.get(key, _MISSING) != value}
    return Update(path=before.path, fields=fields, stamp=before.stamp)


def _spill(job: Job, now: datetime) -> tuple[Job, list[Write]]:
    """Move the oldest rows into blocks once there are too many; a block's name is the job version that spilled it."""
    writes: list[Write] = []
    for name, rows, most in (
        ("history", job.history, HISTORY_KEPT),
        ("ledger", job.walk.ledger, LEDGER_KEPT),
    ):
        if len(rows) <= most:
            continue
        block = {"schema": SCHEMA, "rows": encode(rows[:_SPILL]), "expires_at": now + _SPILL_EXPIRY}
        writes.append(Create(path=f"{job_path(job.job_key)}/{name}/{job.version:08d}", data=block))
        if name == "history":
            job = replace(job, history=job.history[_SPILL:])
        else:
            job = replace(job, walk=replace(job.walk, ledger=job.walk.ledger[_SPILL:]))
    return job, writes


def _decoded(kind: type[T], data: Mapping[str, Any], what: str) -> T:
    try:
        return decode(kind, data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"the document of {what} is not one ({error!r}); mend or delete it") from error


def _check_schema(data: Mapping[str, Any], what: str) -> None:
    written = data.get("schema", SCHEMA)
    if written > SCHEMA:
        raise Retryable(
            f"{what} was written by schema {written}, this plane knows {SCHEMA}; deploy the newer plane"
        )


_MISSING = object()

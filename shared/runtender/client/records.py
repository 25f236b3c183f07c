"""A run with its jobs, read from the store: the model to work with, the documents for machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtender.client.errors import UnknownRun
from runtender.model import HistoryRow, Job, Run
from runtender.ports import Document, Store
from runtender.wire.codec import decode
from runtender.wire.documents import job_from_document, job_path, run_from_document, run_path

# Six families and their repairs, each with a dozen attempts, are below this.
_MAX_JOBS = 200
# Nobody counts further.
_MAX_WAITING = 1000
# Of 50 rows each: a job with more transitions than this has been walking for years.
_MAX_BLOCKS = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """A run's header and its jobs by family and attempt. `document` is what the store holds of them, as JSON shows it."""

    run: Run
    jobs: tuple[Job, ...]
    document: Mapping[str, Any]

    @property
    def latest(self) -> tuple[Job, ...]:
        """Each family's newest attempt, the one that the header speaks of."""
        keys = {entry.job_key for entry in self.run.families.values()}
        return tuple(job for job in self.jobs if job.job_key in keys)


def record_of(header: Document, jobs: Iterable[Document]) -> RunRecord:
    """Make a record of documents as read."""
    ordered = sorted(jobs, key=lambda job: (job["family"], job["attempt"]))
    return RunRecord(
        run=run_from_document(header),
        jobs=tuple(job_from_document(document) for document in ordered),
        document={"run": header, "jobs": ordered},
    )


def load_run(store: Store, run_id: str) -> RunRecord:
    """Read a run and its jobs; raises `UnknownRun`."""
    # A slash would name another document's path.
    header = None if not run_id or "/" in run_id else store.get(run_path(run_id))
    if header is None:
        raise UnknownRun(run_id)
    found = store.find("jobs", where={"run_id": run_id}, limit=_MAX_JOBS)
    return record_of(header.data, (snapshot.data for snapshot in found))


def newest_runs(store: Store, limit: int) -> list[Document]:
    """Return the headers of the newest runs, newest first."""
    return [
        snapshot.data for snapshot in store.find("runs", order_by="created_at", descending=True, limit=limit)
    ]


def queue_places(store: Store) -> Mapping[str, int]:
    """Return the place of each run in the queue before the plane's limits, from 1: that of its first waiting job."""
    waiting = store.find("jobs", order_by="queue_at", limit=_MAX_WAITING)
    places: dict[str, int] = {}
    for place, snapshot in enumerate(waiting, 1):
        places.setdefault(snapshot.data["run_id"], place)
    return places


def whole_history(store: Store, job: Job) -> tuple[HistoryRow, ...]:
    """Return all rows of a job's history, oldest first: those that were moved out of its document come before its own."""
    blocks = store.find(f"{job_path(job.job_key)}/history", limit=_MAX_BLOCKS)
    # A block is named by the version that moved it out, in digits of a fixed number.
    spilled = [row for block in blocks for row in block.data["rows"]]
    return (*(decode(HistoryRow, row) for row in spilled), *job.history)

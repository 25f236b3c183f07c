"""A run with all its jobs, read from the store: the documents for machines, the model for tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtender.cli.exits import Failure
from runtender.model import Job, Run
from runtender.ports import Store
from runtender.wire.documents import job_from_document, run_from_document, run_path

# Six families and their repairs, each with a dozen attempts, are below this.
_MAX_JOBS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """A run's header and its jobs by family and attempt. `document` is what JSON and YAML show."""

    run: Run
    jobs: tuple[Job, ...]
    document: Mapping[str, Any]

    @property
    def latest(self) -> tuple[Job, ...]:
        """Each family's newest attempt, the one that the header speaks of."""
        keys = {entry.job_key for entry in self.run.families.values()}
        return tuple(job for job in self.jobs if job.job_key in keys)


def load_run(store: Store, run_id: str) -> RunRecord:
    """Read a run and its jobs; `Failure` for an unknown run."""
    # A slash would name another document's path.
    header = None if not run_id or "/" in run_id else store.get(run_path(run_id))
    if header is None:
        raise Failure(f"run {run_id!r} is not known here; 'runtender list' shows the runs that are")
    found = store.find("jobs", where={"run_id": run_id}, limit=_MAX_JOBS)
    documents = sorted((snapshot.data for snapshot in found), key=lambda job: (job["family"], job["attempt"]))
    return RunRecord(
        run=run_from_document(header.data),
        jobs=tuple(job_from_document(document) for document in documents),
        document={"run": header.data, "jobs": documents},
    )


def newest_runs(store: Store, limit: int) -> list[Mapping[str, Any]]:
    """Return the headers of the newest runs, newest first."""
    return [
        snapshot.data for snapshot in store.find("runs", order_by="created_at", descending=True, limit=limit)
    ]

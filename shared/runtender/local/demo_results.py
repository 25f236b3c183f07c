"""What the demo reports of a run, read from its documents: how each job went, and what was forecast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runtender.model import Job, Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A run and all its jobs as stored."""

    run: Run
    jobs: tuple[Job, ...]


def job_results(job: Job) -> dict[str, Any]:
    """Return how a job went: its end, its phases in seconds, and the placements that were tried, in order."""
    return {
        "family": job.family,
        "runtime": job.runtime,
        "outcome": None if job.outcome is None else job.outcome.value,
        "reason": None if job.reason is None else job.reason.value,
        "detail": job.detail,
        "cleanup": job.cleanup.state.value,
        "phases": asdict(job.phases),
        "placements": list(_placements(job)),
    }


def merged_forecast(jobs: Sequence[Job]) -> dict[str, Any]:
    """Return the scores of all models of the run, from the workers' summaries; `{}` without one.

    Every job works on the same panel, so its size and the baseline are any job's.
    """
    details = [job.summary.detail for job in jobs if job.summary is not None]
    if not details:
        return {}
    models: dict[str, Mapping[str, Any]] = {}
    for detail in details:
        models.update(detail["models"])
    return {
        "series": details[0]["series"],
        "rows": details[0]["rows"],
        "models": models,
        "baseline": details[0]["baseline"],
    }


def _placements(job: Job) -> Iterator[dict[str, str]]:
    for entry in job.walk.ledger:
        # A candidate is `region/zone`.
        yield {"place": entry.candidate.rpartition("/")[2], "result": f"{entry.verdict.value}: {entry.code}"}
    if job.started_at is not None:
        yield {"place": job.resources[-1].location, "result": "ran"}

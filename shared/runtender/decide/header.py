"""The run header: always the roll-up of its families' latest attempts (I10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from runtender.model import FamilyEntry, Job, Outcome, Phase, Run

# The spec's readers know these words (schema: header status).
_STATUS = {
    Outcome.SUCCEEDED: "COMPLETED",
    Outcome.PARTIAL: "PARTIAL",
    Outcome.CANCELLED: "CANCELLED",
    Outcome.FAILED: "FAILED",
    Outcome.TIMED_OUT: "FAILED",
    Outcome.NO_CAPACITY: "FAILED",
}
_BY_WEIGHT = (Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.NO_CAPACITY, Outcome.FAILED)


def family_entry(job: Job) -> FamilyEntry:
    """Return the header's view of a job."""
    return FamilyEntry(
        job_key=job.job_key,
        attempt=job.attempt,
        phase=job.phase,
        outcome=job.outcome,
        reason=job.reason,
        cleanup=job.cleanup.state,
    )


def with_job(run: Run, job: Job, now: datetime) -> Run:
    """Return the header with the job's entry, unless a later attempt of the family stands there."""
    standing = run.families.get(job.family)
    if standing is not None and standing.attempt > job.attempt:
        return run
    families = {**run.families, job.family: family_entry(job)}
    outcome = roll_up(families)
    finished = (run.finished_at or now) if outcome is not None else None
    return replace(
        run, families=families, outcome=outcome, status=status_word(families), finished_at=finished
    )


def roll_up(families: Mapping[str, FamilyEntry]) -> Outcome | None:
    """All equal: that; any result at all: PARTIAL; else the first of CANCELLED, TIMED_OUT, NO_CAPACITY, FAILED."""
    outcomes = [entry.outcome for entry in families.values()]
    decided = [outcome for outcome in outcomes if outcome is not None]
    if not decided or len(decided) < len(outcomes):
        return None
    if len(set(decided)) == 1:
        return decided[0]
    if {Outcome.SUCCEEDED, Outcome.PARTIAL} & set(decided):
        return Outcome.PARTIAL
    return next(outcome for outcome in _BY_WEIGHT if outcome in decided)


def status_word(families: Mapping[str, FamilyEntry]) -> str:
    """RUNNING or AWAITING_CAPACITY while any family is open, then the outcome's word."""
    outcome = roll_up(families)
    if outcome is not None:
        return _STATUS[outcome]
    waiting = [entry.phase is Phase.AWAITING_CAPACITY for entry in families.values() if entry.outcome is None]
    return "AWAITING_CAPACITY" if all(waiting) else "RUNNING"

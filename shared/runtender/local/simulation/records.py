"""The rules about what is saved: how a job may change from one version to the next, and what its run's header says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runtender.decide.header import family_entry, roll_up, status_word
from runtender.model import Admission, Job, Phase, Run
from runtender.settings import Settings


class BrokenRule(AssertionError):
    """Something happened that must not; the message names the rule."""


def require(holds: bool, rule: str, words: str) -> None:
    """Raise `BrokenRule` unless the rule holds."""
    if not holds:
        raise BrokenRule(f"{rule}: {words}")


def check_begun(job: Job) -> None:
    """Check a job that is saved for the first time."""
    require(len(job.history) == 1, "I5", f"{job.job_key} begins with {len(job.history)} rows")


def check_change(before: Job, job: Job) -> None:
    """Check a job against its version before."""
    require(job.version == before.version + 1, "history", f"{job.job_key} jumps to version {job.version}")
    _check_history(before, job)
    if before.outcome is None:
        return
    same = (before.outcome, before.reason) == (job.outcome, job.reason)
    require(same, "I4", f"{job.job_key}: {before.outcome} became {job.outcome} ({job.reason})")
    require(job.phase in {Phase.STOPPING, Phase.DONE}, "I4", f"{job.job_key} goes back to {job.phase}")


def check_wake(job: Job) -> None:
    """Check that a job is to be woken unless it is at rest."""
    asleep = (job.wake_at is None) == (job.phase is Phase.DONE)
    require(asleep, "wake", f"{job.job_key} has wake {job.wake_at}")


def check_limits(job: Job, jobs: Iterable[Job], settings: Settings) -> None:
    """Check that there was room for a job that is let in."""
    live = [one.job_key for one in jobs if one.admission is Admission.LIVE]
    for limit in settings.live_limits:
        fits = limit.label is not None or limit.jobs is None or len(live) <= limit.jobs
        require(fits, "limits", f"{job.job_key} is let in beside {live}")


def check_older_attempts(job: Job, jobs: Iterable[Job]) -> None:
    """Check that nothing of a job's earlier attempts is left when it places something."""
    older = [
        one.job_key
        for one in jobs
        if (one.run_id, one.family) == (job.run_id, job.family) and one.attempt < job.attempt
        if one.phase is not Phase.DONE
    ]
    require(not older, "I3", f"{job.job_key} is placed before {older} is done")


def check_header(run: Run, jobs: Iterable[Job]) -> None:
    """Check that a run's header is the roll-up of its jobs."""
    latest: dict[str, Job] = {}
    for job in jobs:
        standing = latest.get(job.family)
        if job.run_id == run.run_id and (standing is None or standing.attempt < job.attempt):
            latest[job.family] = job
    entries = {family: family_entry(job) for family, job in latest.items()}
    said: Mapping[str, object] = dict(run.families)
    if said != entries:
        # Too long to be written out each time, as the words of `require` are.
        raise BrokenRule(f"I10: header of {run.run_id} says {said}, not {entries}")
    right = (roll_up(entries), status_word(entries))
    words = f"{run.run_id} says {run.outcome} {run.status}, not {right}"
    require((run.outcome, run.status) == right, "I10", words)


def _check_history(before: Job, job: Job) -> None:
    new = job.history[len(before.history) :]
    kept = job.history[: len(before.history)] == before.history
    require(kept, "I5", f"{job.job_key} rewrites its history")
    moved = (before.phase, before.outcome) != (job.phase, job.outcome)
    words = f"{job.job_key}: {before.phase} -> {job.phase} with {len(new)} new rows"
    require(moved == bool(new), "I5", words)
    require(all(row.cause for row in new), "I5", f"{job.job_key} moves without a cause")
    if new:
        last = (new[-1].phase, new[-1].outcome)
        require(last == (job.phase, job.outcome), "I5", f"{job.job_key}: last row says {last}")

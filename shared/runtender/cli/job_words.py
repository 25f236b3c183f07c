"""Words for how a job stands: what has landed, how long it has taken, what became of it."""

from __future__ import annotations

from datetime import datetime

from runtender.cli.text import span
from runtender.model import Job, Phase, SubmitKind


def placements(job: Job) -> int:
    """Return how many placements have been tried, the present one included."""
    return 1 + max((row.placement for row in job.resources), default=-1)


def cells(job: Job) -> str:
    """Say what has landed: the summary's cells once there is one, until then the files seen; nothing of a task."""
    if job.plan.kind is SubmitKind.TASK:
        return ""
    if job.summary is not None:
        failed = f" ({job.summary.n_error} failed)" if job.summary.n_error else ""
        return f"{job.summary.n_cells} cells{failed}"
    return f"{job.cells.count} cell file{'' if job.cells.count == 1 else 's'}"


def workers(job: Job) -> str:
    """Say how many of a job's many workers are done, and how many have failed; nothing of a job that has one machine."""
    if job.indexes is None:
        return ""
    done, failed = _counted(job.indexes.completed), _counted(job.indexes.failed)
    words = f"{done} of {job.indexes.completions} workers done"
    return f"{words}, {failed} failed" if job.indexes.failed else words


def _counted(indexes: str) -> str:
    """Count what a list such as `0,2-5` names; of one that was cut, what is left of it; of what is none, nothing."""
    pairs = [part.partition("-") for part in indexes.split(",") if part not in {"", "..."}]
    try:
        count = sum(int(last or first) - int(first) + 1 for first, _, last in pairs)
    except ValueError:
        return "?"
    return f"over {count}" if indexes.endswith("...") else str(count)


def landed(job: Job) -> str:
    """Say what a job has brought about so far: cells and workers."""
    return ", ".join(filter(None, (cells(job), workers(job))))


def elapsed(job: Job, now: datetime) -> str:
    """Say how long the job's present stage has taken, against its limit while it has one."""
    if job.outcome is not None:
        return span((job.ended_at or now) - job.accepted_at)
    if job.phase is Phase.RUNNING and job.started_at is not None:
        begun, deadline = job.started_at, job.deadlines.run
    else:
        begun, deadline = job.accepted_at, job.deadlines.capacity
    return f"{span(now - begun)} of {span(deadline - begun)}" if deadline else span(now - begun)


def state(job: Job) -> str:
    """Say where a job stands: its phase until it has an outcome, then that and why."""
    if job.outcome is None:
        return job.phase.value
    return f"{job.outcome} ({job.reason})" if job.reason else job.outcome.value

"""Who may begin: limits on what is alive at once, for the whole plane and for the jobs of a label. Pure.

Jobs that wait stand in one queue. It is gone through from its head; a job that does not fit under one of its limits closes
that limit to everybody behind it, so nobody overtakes within a limit and nobody waits for a limit that is not his own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from runtender.model import Job, JobPlan, LiveLimit

PRIORITY_STEP = timedelta(minutes=10)
"""What one step of priority is worth in waiting: a higher one comes first, and none waits for ever."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Load:
    jobs: int = 0
    vcpus: int = 0
    gpus: int = 0

    def plus(self, plan: JobPlan) -> _Load:
        machines = max(1, plan.worker_count)
        return replace(
            self,
            jobs=self.jobs + 1,
            vcpus=self.vcpus + plan.vcpus * machines,
            gpus=self.gpus + plan.accelerator_count * machines,
        )

    def fits(self, limit: LiveLimit) -> bool:
        pairs = ((self.jobs, limit.jobs), (self.vcpus, limit.vcpus), (self.gpus, limit.gpus))
        return all(most is None or load <= most for load, most in pairs)


def queue_moment(accepted_at: datetime, priority: int) -> datetime:
    """Return where in the queue a job stands: among those who came earlier, the higher its priority."""
    return accepted_at - priority * PRIORITY_STEP


def broken_alone(limits: Iterable[LiveLimit], plan: JobPlan) -> LiveLimit | None:
    """Return a limit that the job would break if it were the only one; None where it can be admitted some time."""
    alone = _Load().plus(plan)
    return next((limit for limit in limits if _is_under(limit, plan) and not alone.fits(limit)), None)


def is_full(limits: Iterable[LiveLimit], live: Sequence[Job]) -> bool:
    """True when a limit of the whole plane has room for no job at all."""
    return any(limit.label is None and limit.jobs is not None and len(live) >= limit.jobs for limit in limits)


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Who may begin. `closed`: however long the queue is, nobody behind those looked at may."""

    jobs: tuple[Job, ...]
    closed: bool


def choose(limits: Sequence[LiveLimit], live: Iterable[Job], waiting: Iterable[Job]) -> Choice:
    """Choose those of the queue that may begin beside what is alive. Looks at no more of it than it has to."""
    loads = [_Load() for _ in limits]
    for job in live:
        loads = _with(limits, loads, job.plan)
    closed: set[LiveLimit] = set()
    chosen: list[Job] = []
    for job in waiting:
        if any(limit.label is None for limit in closed):
            return Choice(jobs=tuple(chosen), closed=True)
        under = {limit for limit in limits if _is_under(limit, job.plan)}
        after = _with(limits, loads, job.plan)
        broken = {
            limit
            for limit, load in zip(limits, after, strict=True)
            if limit in under and not load.fits(limit)
        }
        if not broken and not under & closed:
            loads = after
            chosen.append(job)
        elif broken_alone(limits, job.plan) is None:
            closed |= broken
    return Choice(jobs=tuple(chosen), closed=any(limit.label is None for limit in closed))


def _with(limits: Sequence[LiveLimit], loads: list[_Load], plan: JobPlan) -> list[_Load]:
    pairs = zip(limits, loads, strict=True)
    return [load.plus(plan) if _is_under(limit, plan) else load for limit, load in pairs]


def _is_under(limit: LiveLimit, plan: JobPlan) -> bool:
    return limit.label is None or limit.label in plan.labels.items()

"""The queue in front of the limits, seen from one job: it joins, it waits, it leaves.

Who is let in is chosen for all at once, elsewhere; here a job only says where it stands.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from runtender.capacity.admission import queue_moment
from runtender.decide.decision import Context
from runtender.model import Admission, Job, Phase


def waits_for_admission(job: Job) -> bool:
    """True while the limits keep the job from beginning."""
    return job.admission is Admission.WAITING


def join(job: Job, ctx: Context) -> Job:
    """Return the job in the queue, if there are limits and it was not let in before."""
    if not ctx.limited:
        return admit(job, ctx.now) if waits_for_admission(job) else job
    if job.admission is not None or job.cancel_requested or job.resources:
        return job
    moment = queue_moment(job.accepted_at, job.plan.priority)
    return replace(job, admission=Admission.WAITING, queue_at=moment)


def admit(job: Job, now: datetime) -> Job:
    """Return the job let in. Only from here on does it look for capacity, so its wait for that begins now."""
    deadlines = replace(job.deadlines, capacity=now + job.plan.capacity_wait)
    return replace(
        job, admission=Admission.LIVE, queue_at=None, admitted_at=now, deadlines=deadlines, wake_at=now
    )


def leave(job: Job) -> Job:
    """Return the job out of the queue once it has ended there, or out of the limits once nothing of it is left."""
    over = job.phase is Phase.DONE or (waits_for_admission(job) and job.outcome is not None)
    if not over or job.admission in {None, Admission.LEFT}:
        return job
    return replace(job, admission=Admission.LEFT, queue_at=None)

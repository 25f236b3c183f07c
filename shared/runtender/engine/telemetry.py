"""What a job tells its readers beside its state: the keys that users' queries know (design 9, spec gce.md and support.md).

Everything here is derived from the job; nothing of ours reads it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runtender.engine.plane import Plane
from runtender.model import Job, Outcome

_MOST_WORDS = 2000


def with_telemetry(before: Job, after: Job, plane: Plane) -> Job:
    """Return `after` with what its move from `before` adds: a new placement's handle, or the whole story at its end."""
    news: dict[str, Any] = {}
    if after.live and after.live[-1].nonce not in {row.nonce for row in before.resources}:
        news |= plane.runtimes[after.runtime].describe(after, after.live[-1], plane.settings)
    if _told(after) != _told(before) and any(_told(after)):
        news["capacity"] = capacity_ledger(after)
    if after.outcome is not None and before.outcome is None:
        news |= _at_the_end(after)
    return replace(after, telemetry={**after.telemetry, **news}) if news else after


def _at_the_end(job: Job) -> Mapping[str, Any]:
    phases = job.phases
    story: dict[str, Any] = {
        "platform": {
            "provision_s": phases.provision_s,
            "execute_s": phases.execute_s,
            "total_wall_s": phases.total_wall_s,
        }
    }
    if job.summary is not None:
        story["cells"] = {
            "n_cells": job.summary.n_cells,
            "n_ok": job.summary.n_ok,
            "n_error": job.summary.n_error,
        }
    if job.outcome is not Outcome.SUCCEEDED:
        story["failure"] = {"type": str(job.reason), "message": job.detail[:_MOST_WORDS]}
    return story


def _told(job: Job) -> tuple[object, ...]:
    """Return what the ledger's JSON changes with."""
    return (job.walk.ledger, job.walk.exhausted, job.walk.preflight)


def capacity_ledger(job: Job) -> Mapping[str, Any]:
    """Return the walk's story in the keys that queries know; attempts older than these lie in the spilled blocks."""
    ledger: dict[str, Any] = {
        "service": job.runtime,
        "exhausted": job.walk.exhausted,
        "n_attempts": job.walk.attempts,
        "attempts": [
            {
                "candidate": entry.candidate,
                "verdict": entry.verdict.value,
                "message": entry.message[:_MOST_WORDS],
                "elapsed_seconds": entry.elapsed_s,
            }
            for entry in job.walk.ledger
        ],
    }
    return {**ledger, "preflight": list(job.walk.preflight)} if job.walk.preflight else ledger

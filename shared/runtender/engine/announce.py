"""The notification of a settled run: one message on the notify topic, at least once."""

from __future__ import annotations

import json

from runtender.engine.plane import Plane
from runtender.model import Run


def is_to_be_announced(run: Run) -> bool:
    """True once the run has an outcome of which nobody was told."""
    return run.outcome is not None and run.notified_at is None


def announce(plane: Plane, run: Run) -> None:
    """Publish the run's end; raises `Retryable` when the message was not taken."""
    message = {
        "run_id": run.run_id,
        "outcome": run.outcome,
        "status": run.status,
        "finished_at": run.finished_at.isoformat() if run.finished_at else None,
        "labels": dict(run.labels),
    }
    attributes = {"run_id": run.run_id, "outcome": str(run.outcome)}
    plane.topics.publish(
        plane.settings.notify_topic, json.dumps(message, sort_keys=True).encode(), attributes
    )

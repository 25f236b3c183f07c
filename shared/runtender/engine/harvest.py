"""What a run measured is kept for the plans of later ones: `profiles/{key}`, the newest word wins."""

from __future__ import annotations

import logging

from runtender.engine.plane import Plane
from runtender.errors import RuntenderError
from runtender.forecast.profiles import harvested
from runtender.model import Job
from runtender.ports import Create, Update, Write

_LOG = logging.getLogger("runtender.engine")


def keep_measurements(plane: Plane, job: Job) -> None:
    """Store what the settled job's summary measured. Losing it costs a later plan its figures, never this run anything."""
    if job.summary is None:
        return
    found = harvested(job.plan.resource_plan, job.summary.detail, job.run_id, plane.clock.now())
    try:
        for path, document in found.items():
            standing = plane.store.get(path)
            write: Write = Create(path=path, data=document)
            if standing is not None:
                write = Update(path=path, fields=document, stamp=standing.stamp)
            plane.store.commit([write])
    except RuntenderError as error:
        _LOG.warning("measurements not kept", extra={"job_key": job.job_key, "error": str(error)})

"""The fleet: all workers of this plane, as one list per tick shows them, of the project or of a cluster (design 7).

It finds workers that ended without a word, and orphans: machines that no job lists any more. An orphan is deleted only
after two sightings at least the orphan grace apart, each from a complete list, and a strong read of both the machine and
its job just before (I6, I9).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from runtender.engine.plane import Plane
from runtender.errors import Conflict
from runtender.model import Job, Phase, Resource, ResourceState
from runtender.observed import LiveState, Present, WorkersVerdict
from runtender.ports import ApiRequest, Create, Runtime, Sighted
from runtender.wire.documents import SCHEMA, Unreadable, job_from_document

_LOG = logging.getLogger("runtender.fleet")

_MOST_PAGES = 200
_SIGHTING_EXPIRY = timedelta(days=30)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """A runtime's workers, of the project or of one cluster. Absence proves something only where the list is `complete`."""

    workers: tuple[Sighted, ...]
    complete: bool


def read_fleets(plane: Plane, runtime: Runtime, clusters: Sequence[str]) -> list[Fleet]:
    """Return a runtime's fleet, or one for each of these clusters: what one does not tell says nothing of the others."""
    return [read_fleet(plane, runtime, request) for request in runtime.fleets(plane.settings, clusters)]


def read_fleet(plane: Plane, runtime: Runtime, request: ApiRequest) -> Fleet:
    """List all pages; a page that cannot be read, or says itself that it is partial, makes the whole partial."""
    api, cluster = plane.apis[runtime.name], request.cluster
    workers: list[Sighted] = []
    complete = True
    for _ in range(_MOST_PAGES):
        page = runtime.fleet_page(api.send(request))
        if page is None:
            break
        workers.extend(_placed(worker, cluster) for worker in page.workers)
        complete = complete and not page.partial
        if page.next_page is None:
            return Fleet(workers=tuple(workers), complete=complete)
        request = replace(request, query={**request.query, runtime.page_key: page.next_page})
    facts = {"runtime": runtime.name, "cluster": cluster, "workers": len(workers)}
    _LOG.warning("fleet list not read to its end", extra=facts)
    return Fleet(workers=tuple(workers), complete=False)


def _placed(worker: Sighted, cluster: str) -> Sighted:
    """What a cluster lists is where the cluster is: `projects/p/locations/l/clusters/c`."""
    return replace(worker, location=cluster.split("/")[3]) if cluster else worker


def suspects(plane: Plane, fleet: Fleet) -> set[str]:
    """Return the open jobs whose worker is going or gone. A partial list can accuse; only a whole one could acquit."""
    found: set[str] = set()
    for worker in fleet.workers:
        if _has_ended(worker.sight):
            job = _job_of(plane, worker)
            if job is not None and job.outcome is None:
                found.add(job.job_key)
    return found


def at_work(fleet: Fleet) -> list[tuple[str, Present]]:
    """Return the workers that the list shows up and running, by nonce: they need no look of their own."""
    return [
        (worker.sight.nonce, worker.sight)
        for worker in fleet.workers
        if worker.sight.nonce and worker.sight.state is LiveState.RUNNING
    ]


def _has_ended(sight: Present) -> bool:
    """True for a worker that is going or gone, and for a Job that has finished."""
    workers = sight.workers
    finished = workers is not None and workers.verdict is not WorkersVerdict.RUNNING
    return finished or sight.state in {LiveState.ENDING, LiveState.ENDED}


def sweep(plane: Plane, runtime: Runtime, fleet: Fleet) -> int:
    """Delete orphans that are due; return how many deletes were sent. A partial list sweeps nothing."""
    if not fleet.complete:
        return 0
    return sum(_sweep_one(plane, runtime, worker) for worker in fleet.workers if _its_turn(plane, worker))


def _its_turn(plane: Plane, worker: Sighted) -> bool:
    """Spread the look-ups: each worker has one tick per orphan grace, which also keeps its sightings apart."""
    timing = plane.settings.timing
    ticks = max(1, round(timing.orphan_grace / timing.tick))
    turn = int(plane.clock.now().timestamp() / timing.tick.total_seconds()) % ticks
    return int(hashlib.sha256(worker.sight.uid.encode()).hexdigest(), 16) % ticks == turn


def _sweep_one(plane: Plane, runtime: Runtime, worker: Sighted) -> bool:
    job = _job_of(plane, worker)
    facts = {"instance": worker.name, "location": worker.location, "id": worker.sight.uid}
    if job is None:
        _LOG.error("a worker without a job document; it is left alone", extra=facts)
        return False
    if not _is_orphan(job, worker.sight, worker.name) or not _seen_before(plane, worker):
        return False
    row, looked_at = _row_of(plane, runtime, worker), plane.clock.now()
    settings, api = plane.settings, plane.apis[runtime.name]
    sight = runtime.looked(api.send(runtime.look(job, row, settings)))
    again = _job_of(plane, worker)
    if not isinstance(sight, Present) or sight.uid != worker.sight.uid or sight.plane != settings.plane_id:
        return False
    if again is None or not _is_orphan(again, sight, worker.name):
        return False
    if plane.clock.now() - looked_at > settings.timing.hold - settings.timing.create_margin:
        # The delete goes by name, and by now the name may be another machine's.
        return False
    answer = runtime.deleted(api.send(runtime.delete(again, row, settings)))
    _LOG.warning("orphan deleted", extra={**facts, "job_key": job.job_key, "accepted": answer.accepted})
    return True


def _is_orphan(job: Job, sight: Present, name: str) -> bool:
    """True for a machine of this job's name and key that the job, being at rest or elsewhere, does not list as alive."""
    if job.plan.name != name or sight.key != job.key:
        return False
    return job.phase is Phase.DONE or sight.nonce not in {row.nonce for row in job.live}


def _seen_before(plane: Plane, worker: Sighted) -> bool:
    """Note the first sighting; true when there was one at least the orphan grace ago."""
    path, now = f"orphans/{worker.sight.uid}", plane.clock.now()
    first = plane.store.get(path)
    if first is not None:
        return bool(now - first.data["seen_at"] >= plane.settings.timing.orphan_grace * 0.9)
    sighting = {
        "schema": SCHEMA,
        "name": worker.name,
        "location": worker.location,
        "key": worker.sight.key,
        "seen_at": now,
        "expires_at": now + _SIGHTING_EXPIRY,
    }
    try:
        plane.store.commit([Create(path=path, data=sighting)])
    except Conflict:
        return False
    return False


def _job_of(plane: Plane, worker: Sighted) -> Job | None:
    found = plane.store.find("jobs", where={"key": worker.sight.key}, limit=1) if worker.sight.key else []
    try:
        return job_from_document(found[0].data) if found else None
    except Unreadable as error:
        _LOG.error("a worker whose job cannot be read", extra={"instance": worker.name, "error": str(error)})
        return None


def _row_of(plane: Plane, runtime: Runtime, worker: Sighted) -> Resource:
    """Return a row that names the machine, for the runtime's requests."""
    return Resource(
        kind=runtime.kind,
        name=worker.name,
        location=worker.location,
        placement=0,
        try_number=0,
        nonce=worker.sight.nonce,
        request_id="",
        state=ResourceState.DELETING,
        target_id=worker.sight.uid,
        since=worker.sight.created_at or plane.clock.now(),
    )

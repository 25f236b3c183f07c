"""The eyes of the engine: carries out the looks that `decide.wanted` asks for.

A read that fails with anything but 404 is no observation: it is logged, and the thing stays unseen.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from runtender.capacity.quota import Readings
from runtender.decide import Context, Look, LookKind, wanted
from runtender.decide.decision import is_set
from runtender.engine.crowd import Crowd
from runtender.engine.inputs import split_uri
from runtender.engine.plane import Plane
from runtender.engine.quota import read_quota
from runtender.engine.shortages import Shortages
from runtender.errors import Rejected, Retryable
from runtender.ids import job_key, marker_object, marker_prefix
from runtender.model import Cells, Job, Marker, MarkerStatus, Phase, Resource, ResourceState, Writer
from runtender.observed import MarkerPair, Present, Seen, Sight
from runtender.ports import ApiAnswer, ObjectPage, StoredObject
from runtender.wire.documents import job_from_document, job_path
from runtender.wire.markers import MAX_MARKER_BYTES, parse_marker
from runtender.wire.summaries import MAX_SUMMARY_BYTES, parse_summary
from runtender.worker.layout import CELLS_FOLDER, summary_object

_LOG = logging.getLogger("runtender.engine")

_UNSEEN: Any = object()
# A job of hundreds of thousands of series writes a file per some hundred cells; a longer list is no observation.
_MOST_CELL_FILES = 50_000
_MOST_PAGES = 20
_NOTHING_SIGHTED: Mapping[str, Present] = {}
_CELL_FILE = re.compile(r"\d{6}-\d{6}\.parquet")


class Observer:
    """Looks at the world for one job at a time."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._shortages = Shortages(plane)
        self._crowd = Crowd(plane)
        self._eyes: Mapping[LookKind, tuple[str, Callable[[Job, Resource], Any]]] = {
            LookKind.MARKERS: ("markers", self.markers),
            LookKind.OPERATION: ("operations", self._operation),
            LookKind.SIGHT: ("sights", self._sight),
            LookKind.REMAINS: ("remains", self._remains),
            LookKind.FATE: ("fates", self._fate),
            LookKind.SERIAL: ("serials", self._serial),
            LookKind.SUMMARY: ("summaries", self._summary),
            LookKind.PODS: ("pods", self._pods),
        }

    def see(self, job: Job, ctx: Context, sighted: Mapping[str, Present] = _NOTHING_SIGHTED) -> Seen:
        """Take every look that is wanted, each at most once.

        `sighted` has what was seen a moment ago, by a fleet list of this very tick or by this step: whoever it shows needs no
        look of its own. That it does not show somebody means nothing. A machine that is to be removed is looked at itself; a
        Job's delete says which one it is for.
        """
        seen, tried = Seen(sights=_known(job, sighted)), set[Look]()
        while looks := [look for look in wanted(job, seen, ctx) if look not in tried]:
            for look in looks:
                tried.add(look)
                seen = self._take(job, look, seen)
        return seen

    def operation_is_done(self, job: Job, row: Resource) -> bool:
        """Poll the row's operation alone; an unreadable one is not done."""
        operation = self._operation(job, row)
        return operation is not _UNSEEN and operation.done

    def _take(self, job: Job, look: Look, seen: Seen) -> Seen:
        try:
            if look.kind is LookKind.PREDECESSOR:
                return replace(seen, predecessor_at_rest=self._predecessor_at_rest(job))
            if look.kind is LookKind.SHORTAGES:
                return replace(seen, short=self._shortages.known(job.plan))
            if look.kind is LookKind.QUOTA:
                return replace(seen, quota=self._quota(job))
            row = next(row for row in job.resources if row.nonce == look.nonce)
            if look.kind is LookKind.CELLS:
                return replace(seen, cells=self._cells(job, row))
            register, eye = self._eyes[look.kind]
            thing = eye(job, row)
        except (Retryable, Rejected) as error:
            _LOG.warning("not seen", extra={"job_key": job.job_key, "look": look.kind, "error": str(error)})
            return seen
        if thing is _UNSEEN:
            _LOG.warning("not seen", extra={"job_key": job.job_key, "look": look.kind})
            return seen
        with_it: Any = {**getattr(seen, register), look.nonce: thing}
        return replace(seen, **{register: with_it})

    def markers(self, job: Job, row: Resource) -> MarkerPair:
        """Read what stands below the row's nonce: one listing, and the terminal object's body if there is one."""
        if is_set(row):
            return self._markers_of_many(job, row)
        page = self._plane.objects.list(
            job.plan.status_bucket, marker_prefix(job.job_key, row.nonce), limit=_MOST_PAGES
        )
        found = {stored.name: stored for stored in page.objects}
        started = found.get(marker_object(job.job_key, row.nonce, 0, "started"))
        terminal = found.get(marker_object(job.job_key, row.nonce, 0, "terminal"))
        return MarkerPair(
            started=_started(started),
            terminal=self._terminal(terminal),
            terminal_stored=terminal is not None,
        )

    def _markers_of_many(self, job: Job, row: Resource) -> MarkerPair:
        """Of many workers only the plane's own word on the whole job is a terminal marker, and the first start counts."""
        name = marker_object(job.job_key, row.nonce, None, "terminal")
        stored = self._plane.objects.stat(job.plan.status_bucket, name)
        terminal = self._terminal(stored)
        if terminal is not None and terminal.writer is not Writer.PLANE:
            _LOG.warning("marker ignored", extra={"object": name, "writer": terminal.writer})
            terminal = None
        return MarkerPair(
            started=self._crowd.started(job, row), terminal=terminal, terminal_stored=stored is not None
        )

    def _terminal(self, stored: StoredObject | None) -> Marker | None:
        if stored is None or not 0 < stored.size <= MAX_MARKER_BYTES:
            return None
        body = self._plane.objects.read(stored.bucket, stored.name, limit=MAX_MARKER_BYTES)
        marker = parse_marker(stored.name, body or b"", stored.created_at)
        if marker is None:
            _LOG.warning("marker ignored", extra={"object": stored.name, "size": stored.size})
        return marker

    def _operation(self, job: Job, row: Resource) -> Any:
        runtime = self._plane.runtimes[job.runtime]
        answer = self._plane.apis[job.runtime].send(runtime.operation(job, row, self._plane.settings))
        return _or_unseen(runtime.operated(answer))

    def _sight(self, job: Job, row: Resource) -> Any:
        runtime = self._plane.runtimes[job.runtime]
        answer = self._plane.apis[job.runtime].send(runtime.look(job, row, self._plane.settings))
        return _or_unseen(runtime.looked(answer))

    def _remains(self, job: Job, row: Resource) -> Any:
        runtime, api = self._plane.runtimes[job.runtime], self._plane.apis[job.runtime]
        there = []
        for remain in runtime.remains(job, row, self._plane.settings):
            answer = api.send(remain.look)
            if answer.ok:
                there += [remain.name] if not remain.is_list or _has_items(answer) else []
            elif answer.status != 404 or (remain.is_list and answer.text and not answer.body):
                # A list is empty, not missing: a page that says so is of somebody on the way.
                return _UNSEEN
        return tuple(there)

    def _fate(self, job: Job, row: Resource) -> Any:
        runtime, api = self._plane.runtimes[job.runtime], self._plane.apis[job.runtime]
        request = runtime.fate(job, row, self._plane.settings)
        answers: list[ApiAnswer] = []
        if request is None:
            return _or_unseen(runtime.fated(row, answers))
        for _ in range(_MOST_PAGES):
            answers.append(api.send(request))
            token = answers[-1].body.get("nextPageToken")
            if not token:
                return _or_unseen(runtime.fated(row, answers))
            request = replace(request, query={**request.query, "pageToken": token})
        return _UNSEEN

    def _serial(self, job: Job, row: Resource) -> Any:
        runtime = self._plane.runtimes[job.runtime]
        request = runtime.serial(job, row, self._plane.settings)
        if request is None:
            return None
        answer = self._plane.apis[job.runtime].send(request)
        if answer.status == 404:
            return None
        if not answer.ok:
            return _UNSEEN
        words = runtime.last_words(answer, row)
        name = marker_object(job.job_key, row.nonce, 0, "terminal")
        return words if words and parse_marker(name, words, self._plane.clock.now()) else None

    def _summary(self, job: Job, row: Resource) -> Any:
        """Read rank 0's summary: the only rank of a single VM. One that is not this nonce's, or not whole, is none."""
        if is_set(row):
            return self._crowd.summary(job, row)
        bucket, prefix = split_uri(job.plan.cells_uri)
        name = f"{prefix}/{row.nonce}/{summary_object(0)}"
        body = self._plane.objects.read(bucket, name, limit=MAX_SUMMARY_BYTES + 1)
        return parse_summary(body, row.nonce) if body else None

    def _pods(self, job: Job, row: Resource) -> Any:
        return _or_unseen(self._crowd.pods(job, row))

    def _quota(self, job: Job) -> Mapping[str, Readings]:
        port = self._plane.quota
        return {} if port is None else read_quota(port, [job.plan])

    def _predecessor_at_rest(self, job: Job) -> bool:
        """Go back to the newest attempt that placed something: it waited for those before it."""
        for attempt in range(job.attempt - 1, 0, -1):
            snapshot = self._plane.store.get(job_path(job_key(job.run_id, job.family, attempt)))
            older = None if snapshot is None else job_from_document(snapshot.data)
            if older is not None and (older.phase is not Phase.DONE or older.resources):
                return older.phase is Phase.DONE
        return True

    def _cells(self, job: Job, row: Resource) -> Cells | None:
        bucket, prefix = split_uri(job.plan.cells_uri)
        page = self._plane.objects.list(
            bucket, f"{prefix}/{row.nonce}/{CELLS_FOLDER}", limit=_MOST_CELL_FILES
        )
        return _count_cells(page)


def _known(job: Job, sighted: Mapping[str, Present]) -> dict[str, Sight]:
    rows = [row for row in job.live if row.nonce in sighted and (is_set(row) or _is_at_work(job, row))]
    return {row.nonce: sighted[row.nonce] for row in rows}


def _is_at_work(job: Job, row: Resource) -> bool:
    return row.state is ResourceState.CREATED and row.operation is None and job.outcome is None


def _has_items(answer: ApiAnswer) -> bool:
    """True for a page of a list with something on it, or on a page after it."""
    return bool(answer.body.get("items") or (answer.body.get("metadata") or {}).get("continue"))


def _or_unseen(thing: Any) -> Any:
    return _UNSEEN if thing is None else thing


def _started(stored: StoredObject | None) -> Marker | None:
    """The object's being there is the message; its time is the storage server's."""
    if stored is None or not 0 < stored.size <= MAX_MARKER_BYTES:
        return None
    return Marker(status=MarkerStatus.RUNNING, writer=Writer.GUEST, recorded_at=stored.created_at)


def _count_cells(page: ObjectPage) -> Cells | None:
    if not page.complete:
        return None
    files = [stored for stored in page.objects if _CELL_FILE.fullmatch(stored.name.rpartition("/")[2])]
    return Cells(count=len(files), last_at=max((stored.created_at for stored in files), default=None))

"""What is looked at where a job has many workers: their markers and summaries, their pods, and what pods said last."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

from runtender.engine.inputs import split_uri
from runtender.engine.plane import Plane
from runtender.errors import RuntenderError
from runtender.ids import marker_prefix
from runtender.model import Job, Marker, MarkerStatus, Resource, SubmitKind, Summary, Writer
from runtender.observed import PodsSeen
from runtender.ports import ApiAnswer, Podded, StoredObject
from runtender.redaction import redacted
from runtender.wire.markers import MAX_MARKER_BYTES
from runtender.wire.shares import join_shares
from runtender.wire.summaries import MAX_SUMMARY_BYTES, parse_summary
from runtender.worker.layout import SUMMARY_SUFFIX

_LOG = logging.getLogger("runtender.engine")

_PAGE = 1000
_MOST_PAGES = 200
_READ_AT_ONCE = 16
# From here on threads are worth their while.
_FEW = 8
_MOST_LOGS = 20


class Crowd:
    """Looks at many workers for one job at a time."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def started(self, job: Job, row: Resource) -> Marker | None:
        """Return when the first worker started: as the job knows, else as the first page of markers says."""
        moment = job.started_at
        if moment is None:
            prefix = marker_prefix(job.job_key, row.nonce)
            page = self._plane.objects.list(job.plan.status_bucket, prefix, limit=_PAGE)
            moment = min((stored.created_at for stored in page.objects if _is_start(stored)), default=None)
        if moment is None:
            return None
        return Marker(status=MarkerStatus.RUNNING, writer=Writer.BOOTSTRAP, recorded_at=moment)

    def summary(self, job: Job, row: Resource) -> Summary | None:
        """Return the sum of the workers' summaries; None where no worker has left one."""
        bucket, prefix = split_uri(job.plan.cells_uri)
        folder = f"{prefix}/{row.nonce}/"
        page = self._plane.objects.list(bucket, folder, limit=2 * job.plan.worker_count + _PAGE)
        names = {rank: one.name for one in page.objects if (rank := _rank(one, folder)) is not None}
        ranks = [rank for rank in names if rank < job.plan.worker_count]

        def read(rank: int) -> tuple[int, Summary | None]:
            body = self._plane.objects.read(bucket, names[rank], limit=MAX_SUMMARY_BYTES + 1)
            return rank, parse_summary(body, row.nonce) if body else None

        if len(ranks) <= _FEW:
            read_all = [read(rank) for rank in ranks]
        else:
            with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
                read_all = list(pool.map(read, ranks))
        shares = {rank: share for rank, share in read_all if share is not None}
        return join_shares(shares, job.plan.worker_count)

    def pods(self, job: Job, row: Resource) -> PodsSeen | None:
        """Return the row's pods; None when they could not be read. What warnings add is not worth failing for."""
        runtime, api = self._podded(job), self._plane.apis[job.runtime]
        pages = list(self._pages(job, row))
        if not pages[-1].ok:
            return None
        events = api.send(runtime.events(job, row, self._plane.settings))
        return runtime.podded(row, pages, events)

    def keep_logs(self, job: Job, row: Resource) -> None:
        """Store the ends of the logs of pods, beside those that workers store themselves: of a task all, else of the failed.

        A node that is gone answers for its pods only when a call's time is up, and the Job waits to be removed: what does
        not come in the time of one such call is not waited for.
        """
        from runtender.runtimes.cluster import log_blocks  # noqa: PLC0415 - cold start

        end = self._plane.clock.now() + self._plane.settings.timing.http_timeout
        names = self._heard(job, row)
        words = log_blocks(list(self._logs(job, row, names[:_MOST_LOGS], end)))
        if not words:
            return
        more = len(names) - _MOST_LOGS
        text = f"{words}\n--- {more} more pods ---" if more > 0 else words
        bucket, prefix = split_uri(job.plan.logs_uri)
        try:
            self._plane.objects.put(
                bucket, f"{prefix}/{row.nonce}/pods.log", text.encode(), content_type="text/plain"
            )
        except RuntenderError as error:
            _LOG.warning("pod logs not kept", extra={"job_key": job.job_key, "error": str(error)})

    def _heard(self, job: Job, row: Resource) -> list[str]:
        pages = list(self._pages(job, row))
        seen = self._podded(job).podded(row, pages, ApiAnswer(status=0)) if pages[-1].ok else None
        everybody = job.plan.kind is SubmitKind.TASK
        pods = seen.pods if seen else ()
        return [pod.name for pod in pods if everybody or pod.phase != "Succeeded"]

    def _logs(
        self, job: Job, row: Resource, names: Iterable[str], end: datetime
    ) -> Iterator[tuple[str, str]]:
        runtime, api = self._podded(job), self._plane.apis[job.runtime]
        for name in names:
            if self._plane.clock.now() >= end:
                return
            answer = api.send(runtime.pod_log(job, row, name, self._plane.settings))
            if answer.ok:
                yield name, redacted(answer.text)

    def _pages(self, job: Job, row: Resource) -> Iterator[ApiAnswer]:
        """Yield the pages of the row's pods. Where the last one tells of more, there was no time for them."""
        request = self._podded(job).pods(job, row, self._plane.settings)
        end = self._plane.clock.now() + self._plane.settings.timing.http_timeout
        for _ in range(_MOST_PAGES):
            answer = self._plane.apis[job.runtime].send(request)
            yield answer
            token = (answer.body.get("metadata") or {}).get("continue")
            if not answer.ok or not token or self._plane.clock.now() >= end:
                return
            request = replace(request, query={**request.query, "continue": token})

    def _podded(self, job: Job) -> Podded:
        runtime = self._plane.runtimes[job.runtime]
        assert isinstance(runtime, Podded)  # noqa: S101  # only such runtimes make rows with many workers
        return runtime


def _is_start(stored: StoredObject) -> bool:
    return stored.name.endswith(".started.json") and 0 < stored.size <= MAX_MARKER_BYTES


def _rank(stored: StoredObject, folder: str) -> int | None:
    word = stored.name.removeprefix(folder).removesuffix(SUMMARY_SUFFIX)
    named = stored.name == f"{folder}{word}{SUMMARY_SUFFIX}" and len(word) == 6
    return int(word) if named and word.isascii() and word.isdigit() else None

"""`runtender logs`: what a run's workers printed, from the log objects they uploaded, also when the machine is gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import click

from runtender.cli.exits import Failure, interrupted
from runtender.cli.log_windows import appended, last_lines
from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.parameters import chosen_jobs, family_option, run_argument
from runtender.cli.text import plain
from runtender.cli.world import with_world
from runtender.client.object_uri import ObjectUri
from runtender.client.records import load_run
from runtender.client.world import World
from runtender.model import Job
from runtender.ports import StoredObject
from runtender.redaction import redacted

# A worker uploads its last 5 MB at the end, and 64 KiB each minute until then.
_MAX_LOG_BYTES = 6 * 1024 * 1024
# A day's run leaves 1,440 objects for each worker.
_MAX_OBJECTS = 20_000
_OBJECT = re.compile(r".*/(?P<index>\d+)\.(?P<number>\d+)\.log")
# What the plane kept of pods that are gone, in one object of a try.
_OF_PODS = "pods.log"
_ALL_PODS = -1
_BETWEEN_LOOKS = timedelta(seconds=10)
_LEAST_PAUSE_S = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """The newest log object of one worker of a job's try; `index` -1: what the plane kept of pods that are gone."""

    job_key: str
    nonce: str
    index: int
    stored: StoredObject

    @property
    def worker(self) -> tuple[str, int]:
        """Which worker it is of; a nonce belongs to one try of one job."""
        return (self.nonce, self.index)

    @property
    def uri(self) -> str:
        """Where it lies."""
        return str(ObjectUri(self.stored.bucket, self.stored.name))


@click.command()
@run_argument()
@family_option
@click.option("--tail", metavar="LINES", type=click.IntRange(0), help="Only the last lines of each worker.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is printed, until the run has ended.")
@with_format
@with_world
def logs(
    world: World, chosen: Format, /, *, run_id: str, family: str | None, tail: int | None, follow: bool
) -> None:
    """Print what the workers of RUN printed, from the log objects they uploaded.

    Of each family's newest attempt, that is the newest try that has any; it stays when the machine is gone. A worker
    uploads about once a minute. Of pods that the plane removed it has kept the ends of their logs.
    """
    if follow:
        if chosen is not Format.TABLE:
            raise click.UsageError("--follow prints text as it comes; leave out --format")
        with interrupted(f"no longer following; run {run_id} goes on"):
            _follow(world, run_id, family, tail)
        return
    jobs = chosen_jobs(load_run(world.store, run_id), family)
    found = [
        (upload, _readable(_content(world, upload), tail)) for job in jobs for upload in _uploads(world, job)
    ]
    emit(chosen, {"run_id": run_id, "logs": [_document(*log) for log in found]}, lambda: _view(found))
    if not found:
        raise Failure(_why_none(run_id, jobs))


def _why_none(run_id: str, jobs: Iterable[Job]) -> str:
    if all(job.outcome is not None for job in jobs):
        return f"run {run_id} has no logs: it has ended, and no worker of it uploaded one"
    return f"run {run_id} has no logs yet; a worker uploads its first after about a minute"


def _follow(world: World, run_id: str, family: str | None, tail: int | None) -> None:
    """Print what each new upload adds to the last one, until all jobs have ended."""
    printed = _Printed(world, tail)
    while True:
        jobs = chosen_jobs(load_run(world.store, run_id), family)
        for job in jobs:
            for upload in _uploads(world, job):
                printed.add(upload)
        # A worker stores its last log before it says that it has ended, so what was read just now is complete.
        if all(job.outcome is not None for job in jobs):
            return
        pause = _BETWEEN_LOOKS.total_seconds() / world.settings.time_scale
        world.clock.sleep(max(pause, _LEAST_PAUSE_S))


class _Printed:
    """What was printed of each worker's log, so that only the rest is."""

    def __init__(self, world: World, tail: int | None) -> None:
        self._world = world
        self._tail = tail
        self._uris: dict[tuple[str, int], str] = {}
        self._windows: dict[tuple[str, int], bytes] = {}
        self._last: tuple[str, int] | None = None

    def add(self, upload: Upload) -> None:
        """Print what an upload has that was not printed, under its name where the last words were another worker's."""
        worker = upload.worker
        if self._uris.get(worker) == upload.uri:
            return
        window = _content(self._world, upload)
        known = self._windows.get(worker)
        fresh = _readable(window, self._tail) if known is None else _readable(appended(known, window), None)
        self._uris[worker], self._windows[worker] = upload.uri, window
        if not fresh:
            return
        if worker != self._last:
            note(f"==> {upload.uri} <==")
            self._last = worker
        click.echo(fresh, nl=False)


def _uploads(world: World, job: Job) -> list[Upload]:
    """Return the newest upload of each worker of the job's newest try that has any, by index."""
    bucket = world.settings.code_bucket
    for row in reversed(job.resources):
        prefix = f"runs/logs/{job.job_key}/{row.nonce}/"
        newest = _newest_by_index(world.objects.list(bucket, prefix, limit=_MAX_OBJECTS).objects)
        if newest:
            return [
                Upload(job_key=job.job_key, nonce=row.nonce, index=index, stored=newest[index])
                for index in sorted(newest)
            ]
    return []


def _newest_by_index(stored: Iterable[StoredObject]) -> dict[int, StoredObject]:
    """Return each worker's last upload; a try numbers its uploads upwards."""
    newest: dict[int, tuple[int, StoredObject]] = {}
    for each in stored:
        match = _OBJECT.fullmatch(each.name)
        if each.name.rpartition("/")[2] == _OF_PODS:
            newest[_ALL_PODS] = (0, each)
        elif match is not None:
            index, number = int(match["index"]), int(match["number"])
            if index not in newest or number > newest[index][0]:
                newest[index] = (number, each)
    return {index: each for index, (_, each) in newest.items()}


def _content(world: World, upload: Upload) -> bytes:
    return world.objects.read(upload.stored.bucket, upload.stored.name, limit=_MAX_LOG_BYTES) or b""


def _readable(content: bytes, tail: int | None) -> str:
    # An upload cuts at a byte, not at a character.
    text = plain(redacted(content.decode("utf-8", "replace")))
    return text if tail is None else last_lines(text, tail)


def _document(upload: Upload, text: str) -> dict[str, Any]:
    return {
        "job_key": upload.job_key,
        "nonce": upload.nonce,
        "index": upload.index,
        "uri": upload.uri,
        "text": text,
    }


def _view(found: Iterable[tuple[Upload, str]]) -> Iterator[str]:
    for upload, text in found:
        note(f"==> {upload.uri} <==")
        yield text.rstrip("\n")

"""`runtender logs`: what a run's workers printed, from the log objects they uploaded, also when the machine is gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from runtender.cli.exits import Failure
from runtender.cli.object_uri import ObjectUri
from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.records import RunRecord, load_run
from runtender.cli.text import plain
from runtender.cli.world import World, with_world
from runtender.model import Job
from runtender.ports import StoredObject

# A worker uploads its last 5 MB at the end, and 64 KiB each minute until then.
_MAX_LOG_BYTES = 6 * 1024 * 1024
# A day's run leaves 1,440 objects for each worker.
_MAX_OBJECTS = 20_000
_OBJECT = re.compile(r".*/(?P<index>\d+)\.(?P<number>\d+)\.log")


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerLog:
    """The newest log object of one worker."""

    job_key: str
    nonce: str
    index: int
    uri: ObjectUri
    text: str

    @property
    def document(self) -> dict[str, Any]:
        """What JSON and YAML show."""
        return {
            "job_key": self.job_key,
            "nonce": self.nonce,
            "index": self.index,
            "uri": str(self.uri),
            "text": self.text,
        }


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--family", help="Only this model family.")
@with_format
@with_world
def logs(world: World, chosen: Format, run_id: str, family: str | None) -> None:
    """Print what the workers of RUN printed, from the log objects they uploaded.

    Of each family's newest attempt, that is the newest try that has any; it stays when the machine is gone.
    """
    jobs = _jobs(load_run(world.store, run_id), family)
    found = [log for job in jobs for log in _worker_logs(world, job)]
    emit(chosen, {"run_id": run_id, "logs": [log.document for log in found]}, lambda: _view(found))
    if not found:
        raise Failure(f"run {run_id} has no logs yet; a worker uploads its first after about a minute")


def _jobs(record: RunRecord, family: str | None) -> list[Job]:
    found = [job for job in record.latest if family in {None, job.family}]
    if not found:
        known = ", ".join(record.run.families)
        raise click.BadParameter(f"{family!r} is no family of the run; it has {known}", param_hint="--family")
    return found


def _worker_logs(world: World, job: Job) -> list[WorkerLog]:
    """Return a log per worker of the job's newest try that uploaded any, by index."""
    bucket = world.settings.code_bucket
    for row in reversed(job.resources):
        prefix = f"runs/logs/{job.job_key}/{row.nonce}/"
        newest = _newest_by_index(world.objects.list(bucket, prefix, limit=_MAX_OBJECTS).objects)
        found = [_read(world, job, row.nonce, index, stored) for index, stored in sorted(newest.items())]
        if found:
            return found
    return []


def _newest_by_index(stored: Iterable[StoredObject]) -> dict[int, StoredObject]:
    """Return each worker's last upload; a try numbers its uploads upwards."""
    newest: dict[int, tuple[int, StoredObject]] = {}
    for each in stored:
        match = _OBJECT.fullmatch(each.name)
        if match is not None:
            index, number = int(match["index"]), int(match["number"])
            if index not in newest or number > newest[index][0]:
                newest[index] = (number, each)
    return {index: each for index, (_, each) in newest.items()}


def _read(world: World, job: Job, nonce: str, index: int, stored: StoredObject) -> WorkerLog:
    content = world.objects.read(stored.bucket, stored.name, limit=_MAX_LOG_BYTES) or b""
    return WorkerLog(
        job_key=job.job_key,
        nonce=nonce,
        index=index,
        uri=ObjectUri(stored.bucket, stored.name),
        # The upload cuts at a byte, not at a character.
        text=plain(content.decode("utf-8", "replace")),
    )


def _view(found: Iterable[WorkerLog]) -> Iterator[str]:
    for log in found:
        note(f"==> {log.uri} <==")
        yield log.text.rstrip("\n")

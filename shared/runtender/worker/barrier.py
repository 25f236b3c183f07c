"""Where the ranks of a job meet: each leaves a small object when it is done, and rank 0 waits for all of them.

Only rank 0 may own a run's header, so it must know how the others ended. An object says whose it is: an earlier attempt
or placement under the same name is never taken for this one, and its name holds the nonce, so that it is written once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from runtender.worker.objects import ObjectMissing
from runtender.worker.topology import Source, Topology

POLL_S = 3.0
PATIENCE_S = 1800.0

_CLUSTERED = frozenset({Source.K8S_INDEXED_JOB, Source.VERTEX_CLUSTER_SPEC})
_CONTENT_TYPE = "application/json"


class BarrierError(Exception):
    """The ranks did not all succeed: some are missing, or one has failed."""


class ObjectStore(Protocol):
    """What is needed of Cloud Storage (see `objects.Objects`)."""

    def read(self, uri: str) -> bytes:
        """Return the whole content; ObjectMissing if there is none."""

    def write_once(self, uri: str, content: bytes, content_type: str) -> None:
        """Store an object under a name that is used once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """How a rank ended: `error` is empty when it did its share, however many of its cells failed."""

    status: str
    n_cells: int = 0
    n_ok: int = 0
    n_error: int = 0
    error: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Meeting:
    """One barrier of one try of a job."""

    folder: str
    attempt: int
    nonce: str
    topology: Topology

    def uri(self, rank: int) -> str:
        """Return where a rank leaves its object."""
        return f"{self.folder}/rank_{rank}.json"


def is_needed(topology: Topology, environ: Mapping[str, str], *, manage_header: bool) -> bool:
    """Tell whether the ranks have to meet at all.

    Pods of an Indexed Job that own no header end each for themselves: Kubernetes knows when all have.
    """
    if topology.world_size <= 1:
        return False
    if topology.source is Source.K8S_INDEXED_JOB and not manage_header:
        return False
    return topology.source in _CLUSTERED or bool(environ.get("SF_VERTEX_JOB_ID"))


def barrier_id(environ: Mapping[str, str], run_id: str, families: Sequence[str]) -> str:
    """Return the name of the meeting: the job's, else the run's; with the try's nonce where the plane told one."""
    job = environ.get("SF_VERTEX_JOB_ID") or environ.get("CLOUD_ML_JOB_ID")
    name = job or f"{run_id}-{'+'.join(families) or 'default'}"
    nonce = environ.get("SF_NONCE")
    return f"{name}-{nonce}" if nonce else name


def barrier_folder(artifact_root: str, run_id: str, name: str) -> str:
    """Return the folder of a meeting's objects."""
    return f"{artifact_root.rstrip('/')}/{run_id}/_vertex_barrier/{name}"


def arrive(meeting: Meeting, objects: ObjectStore, report: Report) -> None:
    """Leave this rank's object."""
    body: dict[str, Any] = {
        "rank": meeting.topology.rank,
        "world_size": meeting.topology.world_size,
        "attempt": meeting.attempt,
        "nonce": meeting.nonce,
        "status": report.status,
    }
    if report.error:
        body |= {"status": "FAILED", "error": report.error}
    else:
        body |= {"n_cells": report.n_cells, "n_ok": report.n_ok, "n_error": report.n_error}
    content = json.dumps(body, sort_keys=True).encode()
    objects.write_once(meeting.uri(meeting.topology.rank), content, _CONTENT_TYPE)


def await_peers(
    meeting: Meeting, objects: ObjectStore, *, clock: Callable[[], float], sleep: Callable[[float], None]
) -> dict[int, Report]:
    """Return the other ranks' reports once all are there.

    Raises BarrierError as soon as one has failed, or, naming them, when some are missing after half an hour.
    """
    missing = set(range(meeting.topology.world_size)) - {meeting.topology.rank}
    reports: dict[int, Report] = {}
    ends = clock() + PATIENCE_S
    while missing:
        for rank in sorted(missing):
            report = _read(meeting, objects, rank)
            if report is None:
                continue
            if report.error:
                raise BarrierError(f"rank {rank} failed: {report.error}")
            reports[rank] = report
            missing.discard(rank)
        if missing and clock() >= ends:
            ranks = ", ".join(map(str, sorted(missing)))
            raise BarrierError(f"no word from rank {ranks} for {PATIENCE_S:g} s")
        if missing:
            sleep(POLL_S)
    return reports


def _read(meeting: Meeting, objects: ObjectStore, rank: int) -> Report | None:
    """Return what a rank said; None for no object, and for one of another try or rank."""
    try:
        body = json.loads(objects.read(meeting.uri(rank)))
    except (ObjectMissing, ValueError):
        return None
    if not isinstance(body, dict) or (body.get("nonce"), body.get("attempt"), body.get("rank")) != (
        meeting.nonce,
        meeting.attempt,
        rank,
    ):
        return None
    counts = {name: int(body.get(name) or 0) for name in ("n_cells", "n_ok", "n_error")}
    return Report(status=str(body.get("status")), error=str(body.get("error") or ""), **counts)

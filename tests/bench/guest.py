"""What a worker that goes by the book writes: its markers, its cells, its summary. All guests of the benchmark write by this."""

from __future__ import annotations

import json
from typing import Any, Literal

from runtender.ids import marker_object
from runtender.model import Job
from runtender.ports import Objects
from runtender.worker.layout import cells_object, summary_object

_SUMMARY = {"n_cells": 315, "n_ok": 315, "n_error": 0, "complete": True}


def write_started(objects: Objects, job: Job, index: int = 0) -> str:
    """Write the started marker; return its object's name."""
    return _mark(objects, job, index, "started", {"status": "RUNNING"})


def write_cells(objects: Objects, job: Job, sequence: int, index: int = 0) -> None:
    """Write one file of cells."""
    objects.put(*_result(job, cells_object(index, sequence)), b"PAR1")


def write_end(objects: Objects, job: Job, index: int = 0) -> str:
    """Write the summary and the terminal marker; return the marker's object's name."""
    summary = {"nonce": job.resources[-1].nonce, "rank": index, **_SUMMARY}
    objects.put(*_result(job, summary_object(index)), json.dumps(summary).encode())
    return _mark(objects, job, index, "terminal", {"status": "SUCCEEDED", "exit_code": 0, "writer": "guest"})


def _mark(
    objects: Objects, job: Job, index: int, stage: Literal["started", "terminal"], body: dict[str, Any]
) -> str:
    name = marker_object(job.job_key, job.resources[-1].nonce, index, stage)
    objects.create("code", name, json.dumps(body).encode())
    return name


def _result(job: Job, name: str) -> tuple[str, str]:
    bucket, _, folder = job.plan.cells_uri.removeprefix("gs://").partition("/")
    return bucket, f"{folder}/{job.resources[-1].nonce}/{name}"

"""Entry point `forecast_worker.main:main`: read the assignment, work through it, store cells and summary.

Exit status: 0 the summary is stored (also when cells failed: it says how many), 2 nothing was done because
the input is at fault (the message names the field), 1 anything else, with a traceback.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from forecast_worker.assignment import Assignment, InputError, Told, read_assignment, read_told
from forecast_worker.backtest import Chunk, run_baseline
from forecast_worker.cells import to_parquet
from forecast_worker.slots import run_chunks, slot_count
from forecast_worker.summary import Tally, to_json
from runtender.errors import Rejected
from runtender.worker.chunks import heaviest_first
from runtender.worker.layout import cells_object, summary_object
from runtender.worker.objects import Objects
from runtender.worker.panel import PanelError
from runtender.worker.topology import TopologyError

# Results show that a run is alive, so even a small one stores about this many files, and no file grows large.
_FILES_WANTED = 12
_MOST_CELLS_PER_FILE = 256
_PARQUET = "application/vnd.apache.parquet"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the worker; return the exit status."""
    try:
        told = read_told(sys.argv[1:] if arguments is None else arguments, os.environ)
        objects = Objects(project=told.project)
        assignment = read_assignment(told, objects)
    except (InputError, PanelError, Rejected, TopologyError) as error:
        print(f"forecast_worker: {error}", file=sys.stderr)
        return 2
    _work(told, assignment, objects)
    return 0


def cut(assignment: Assignment) -> list[Chunk]:
    """Cut a share into chunks of one model each, in the order they are to be done."""
    cells = len(assignment.models) * len(assignment.series)
    size = max(1, min(_MOST_CELLS_PER_FILE, -(-cells // _FILES_WANTED)))
    return heaviest_first(
        Chunk(model=model, series=assignment.series[start : start + size])
        for model in assignment.models
        for start in range(0, len(assignment.series), size)
    )


def _work(told: Told, assignment: Assignment, objects: Objects) -> None:
    started = time.monotonic()
    chunks = cut(assignment)
    expected = sum(len(chunk.series) for chunk in chunks)
    slots = slot_count(os.environ)
    _say(f"rank {told.topology.rank} of {told.topology.world_size}: models {', '.join(assignment.models)}")
    _say(f"{len(assignment.series)} series, {expected} cells in {len(chunks)} files, {slots} slots")
    if assignment.warning:
        _say(f"warning: {assignment.warning}")
    tally = Tally()
    for sequence, cells in enumerate(run_chunks(chunks, assignment.plan, slots)):
        tally.add(cells)
        name = cells_object(told.topology.rank, sequence)
        content = to_parquet(cells, told.origin)
        objects.write_once(f"{told.cells_uri}/{name}", content, _PARQUET, {"cells": str(len(cells))})
        _say(
            f"{tally.n_cells} of {expected} cells after {time.monotonic() - started:.1f} s: {cells[0].model}"
        )
    tally.add_baseline(run_baseline(series, assignment.plan) for series in assignment.series)
    content = to_json(
        tally,
        told.origin,
        rank=told.topology.rank,
        world_size=told.topology.world_size,
        series=len(assignment.series),
        rows=sum(len(series) for series in assignment.series),
        seconds=round(time.monotonic() - started, 3),
    )
    objects.write_once(f"{told.cells_uri}/{summary_object(told.topology.rank)}", content, "application/json")
    for failure in tally.failures():
        _say(f"failed: {failure}")
    _say(f"done: {tally.n_ok} of {tally.n_cells} cells have a forecast")


def _say(line: str) -> None:
    # Unbuffered: the log is read while the worker runs.
    print(line, flush=True)

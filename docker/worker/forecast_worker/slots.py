"""Doing chunks side by side: one process per slot, because fitting models hold the interpreter's lock."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import forkserver

from forecast_worker.backtest import Backtest, Chunk, run_chunk
from forecast_worker.cells import Cell
from forecast_worker.models import load_library


def slot_count(environ: Mapping[str, str]) -> int:
    """Return how many cells fit side by side: this process's cores over the cores a slot may use."""
    cap = environ.get("OMP_NUM_THREADS", "")
    return max(1, len(os.sched_getaffinity(0)) // max(1, int(cap) if cap.isdigit() else 1))


def run_chunks(chunks: Sequence[Chunk], plan: Backtest, slots: int) -> Iterator[list[Cell]]:
    """Yield the cells of each chunk as it is done; BrokenProcessPool if a slot dies (short of memory)."""
    work = partial(run_chunk, plan=plan)
    slots = min(slots, len(chunks))
    if slots <= 1:
        load_library()
        yield from map(work, chunks)
        return
    _start_server()
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(slots, mp_context=context, initializer=_start_slot) as executor:
        try:
            for done in as_completed([executor.submit(work, chunk) for chunk in chunks]):
                yield done.result()
        finally:
            executor.shutdown(cancel_futures=True)


def _start_server() -> None:
    """Start the process that the slots are forked from: it has done the slow imports once."""
    forkserver.set_forkserver_preload(["forecast_worker.library", "forecast_worker.backtest"])
    # By itself it finds what is installed, and this package may lie in a zip.
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if path is not None:
            os.environ["PYTHONPATH"] = path


def _start_slot() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    load_library()


def _end_with_parent() -> None:
    # A worker that is killed takes its slots along; nobody else would end them.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

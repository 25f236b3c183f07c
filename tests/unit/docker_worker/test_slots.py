"""Slots: how many, the same results as one, and what becomes of them when something dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest

import forecast_worker
from forecast_worker.backtest import Backtest, Chunk
from forecast_worker.slots import run_chunks, slot_count
from runtender.worker.panel import Panel
from runtender.worker.periods import frequency

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("cap", "expected"),
    [
        pytest.param({}, CORES, id="a core each"),
        pytest.param({"OMP_NUM_THREADS": "1"}, CORES, id="capped at one thread"),
        pytest.param({"OMP_NUM_THREADS": str(CORES)}, 1, id="one slot with all cores"),
        pytest.param({"OMP_NUM_THREADS": str(2 * CORES)}, 1, id="never none"),
        pytest.param({"OMP_NUM_THREADS": "4,2"}, CORES, id="nested levels are not read"),
    ],
)
def test_slots_share_the_cores_by_the_thread_cap(cap, expected):
    assert slot_count(cap) == expected


@pytest.fixture
def plan() -> Backtest:
    daily = frequency("D")
    assert daily is not None
    return Backtest(frequency=daily, horizon=7)


@pytest.fixture
def chunks(flights: Panel) -> list[Chunk]:
    return [Chunk(model="theta", series=flights.series[start : start + 3]) for start in (0, 3, 6)]


def test_two_slots_compute_what_one_does(plan, chunks):
    def cells(slots: int):
        found = [cell for done in run_chunks(chunks, plan, slots) for cell in done]
        return sorted(
            (replace(cell, seconds=0, peak_rss_bytes=0) for cell in found), key=lambda cell: cell.ts_id
        )

    assert cells(2) == cells(1)


def test_no_chunks_need_no_slot(plan):
    assert list(run_chunks([], plan, 2)) == []


def test_a_slot_that_dies_ends_the_work(plan, chunks):
    done = run_chunks(chunks * 50, plan, 2)
    next(done)
    for slot in multiprocessing.active_children():
        slot.kill()

    with pytest.raises(BrokenProcessPool):
        list(done)


ENDLESS = """
from array import array
from forecast_worker.backtest import Backtest, Chunk
from runtender.worker.periods import frequency
from forecast_worker.slots import run_chunks
from runtender.worker.panel import Series
import multiprocessing
values = array("d", [float(number % 7 + number) for number in range(4000)])
series = Series(ts_id="s", epochs=array("q", range(0, 4000 * 86400, 86400)), values=values)
chunks = [Chunk(model="theta", series=(series,))] * 2 + [Chunk(model="auto_arima", series=(series,) * 99)] * 4
for done in run_chunks(chunks, Backtest(frequency=frequency("D"), horizon=7), 2):
    print(*(slot.pid for slot in multiprocessing.active_children()), flush=True)
"""


# In the place of the library, which takes each worker seconds to load.
QUICK_LIBRARY = """
import numpy as np
class Theta:
    def __init__(self, season_length):
        pass
    def forecast(self, y, h):
        return {"mean": np.zeros(h)}
class AutoARIMA(Theta):
    def forecast(self, y, h):
        while True:
            pass
"""


@pytest.fixture
def library(request, tmp_path):
    """The folders before all others that modules come from."""
    if request.param == "the library":
        return []
    (tmp_path / "statsforecast").mkdir()
    (tmp_path / "statsforecast" / "__init__.py").touch()
    (tmp_path / "statsforecast" / "models.py").write_text(QUICK_LIBRARY)
    return [str(tmp_path)]


@pytest.mark.parametrize(
    ("how", "library"),
    [(signal.SIGTERM, "a quick library"), (signal.SIGKILL, "the library")],
    indirect=["library"],
)
def test_slots_do_not_outlive_their_worker(how, library):
    path = os.pathsep.join([*library, str(Path(forecast_worker.__file__).parents[1]), *sys.path])
    worker = subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    with worker:
        assert worker.stdout is not None
        slots = [int(pid) for pid in worker.stdout.readline().split()]
        worker.send_signal(how)
        worker.wait()

    assert len(slots) == 2
    deadline = time.monotonic() + 30
    while (left := [pid for pid in slots if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"

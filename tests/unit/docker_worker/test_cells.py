"""The cells' files, read back."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pyarrow.parquet as pq

from forecast_worker.cells import Cell, Origin, to_parquet

ORIGIN = Origin(run_id="r", job_key="k", nonce="n")


def test_a_file_has_one_row_per_cell_with_its_origin():
    cells = [
        Cell(ts_id="a", model="theta", mase=0.5, smape=9.0, seconds=0.1, peak_rss_bytes=7, ds=(0,), y=(1.0,), yhat=(2.0,)),
        Cell(ts_id="b", model="theta", error="x" * 600),
    ]  # fmt: skip

    rows = pq.read_table(io.BytesIO(to_parquet(cells, ORIGIN))).to_pylist()

    origin = {"run_id": "r", "job_key": "k", "nonce": "n", "model": "theta"}
    assert rows == [
        {
            **origin, "ts_id": "a", "status": "OK", "error": None, "mase": 0.5, "smape": 9.0, "seconds": 0.1,
            "peak_rss_bytes": 7, "ds": [datetime(1970, 1, 1, tzinfo=UTC)], "y": [1.0], "yhat": [2.0],
        },
        {
            **origin, "ts_id": "b", "status": "ERROR", "error": "x" * 500, "mase": None, "smape": None, "seconds": 0.0,
            "peak_rss_bytes": 0, "ds": [], "y": [], "yhat": [],
        },
    ]  # fmt: skip


def test_files_with_and_without_errors_have_one_schema():
    fine = to_parquet(
        [Cell(ts_id="a", model="m", mase=1.0, smape=1.0, ds=(0,), y=(1.0,), yhat=(1.0,))], ORIGIN
    )
    bad = to_parquet([Cell(ts_id="a", model="m", error="e")], ORIGIN)

    assert pq.read_schema(io.BytesIO(fine)) == pq.read_schema(io.BytesIO(bad))

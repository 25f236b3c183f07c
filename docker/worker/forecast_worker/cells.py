"""A cell, one series forecast by one model, and the Parquet files that cells are stored in."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.parquet as pq

_LONGEST_ERROR = 500

_SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("job_key", pa.string()),
        ("nonce", pa.string()),
        ("ts_id", pa.string()),
        ("model", pa.string()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("mase", pa.float64()),
        ("smape", pa.float64()),
        ("seconds", pa.float64()),
        ("peak_rss_bytes", pa.int64()),
        ("ds", pa.list_(pa.timestamp("s", tz="UTC"))),
        ("y", pa.list_(pa.float64())),
        ("yhat", pa.list_(pa.float64())),
    ]
)


class CellStatus(StrEnum):
    """How one cell ended."""

    OK = "OK"
    ERROR = "ERROR"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One backtest. `error` is None when it went well; `mase` is None also where the series' scale is zero.

    `seconds` is the time this cell took, `peak_rss_bytes` the largest resident size of its process until its
    end; `ds` (seconds since 1970), `y` and `yhat` cover the held-out horizon.
    """

    ts_id: str
    model: str
    error: str | None = None
    mase: float | None = None
    smape: float | None = None
    seconds: float = 0.0
    peak_rss_bytes: int = 0
    ds: tuple[int, ...] = ()
    y: tuple[float, ...] = ()
    yhat: tuple[float, ...] = ()

    @property
    def status(self) -> CellStatus:
        """Return OK or ERROR."""
        return CellStatus.OK if self.error is None else CellStatus.ERROR


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Whose cells they are; written into each row, so that files of many runs can be read as one table."""

    run_id: str
    job_key: str
    nonce: str


def to_parquet(cells: Iterable[Cell], origin: Origin) -> bytes:
    """Return a Parquet file with one row per cell."""
    rows = [
        {
            "run_id": origin.run_id,
            "job_key": origin.job_key,
            "nonce": origin.nonce,
            "ts_id": cell.ts_id,
            "model": cell.model,
            "status": cell.status.value,
            "error": cell.error[:_LONGEST_ERROR] if cell.error else None,
            "mase": cell.mase,
            "smape": cell.smape,
            "seconds": cell.seconds,
            "peak_rss_bytes": cell.peak_rss_bytes,
            "ds": cell.ds,
            "y": cell.y,
            "yhat": cell.yhat,
        }
        for cell in cells
    ]
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), content, compression="zstd")
    return content.getvalue()

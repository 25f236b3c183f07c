"""Holds the cells of one job against another's: the same forecasts, however many workers shared the work."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from runtender.local.errors import LocalCloudError
from runtender.model import Job
from runtender.ports import Objects
from runtender.worker.layout import CELLS_FOLDER

CellKey = tuple[str, str]
"""Series and model."""

Cells = Mapping[CellKey, Mapping[str, Any]]

# What a cell says of the forecast. Whose it is, what it cost and where it ran may differ.
_SAID = ("status", "error", "mase", "smape", "ds", "y", "yhat")
_MOST_FILES = 10_000
_LARGEST_FILE = 64 << 20
_SHOWN = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """How a run's cells compare with those of an earlier run, `run_id`: `cells` are that one's.

    `missing` and `added` count keys that only one of them has, `different` those with another forecast; `examples` name a
    few of all these, as `series/model`.
    """

    run_id: str
    cells: int
    missing: int
    added: int
    different: int
    examples: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """True where there are cells, and all are the same."""
        return self.cells > 0 and not (self.missing or self.added or self.different)

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "examples": list(self.examples), "equal": self.is_equal}


def read_cells(objects: Objects, job: Job) -> Cells:
    """Return all cells that a job's last try stored, by series and model; `LocalCloudError` where one stands there twice."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - 50 MB that only a comparison needs

    if not job.resources:
        return {}
    bucket, _, folder = f"{job.plan.cells_uri}/{job.resources[-1].nonce}/{CELLS_FOLDER}".removeprefix(
        "gs://"
    ).partition("/")
    cells: dict[CellKey, Mapping[str, Any]] = {}
    for stored in objects.list(bucket, folder, limit=_MOST_FILES).objects:
        content = objects.read(bucket, stored.name, limit=_LARGEST_FILE) or b""
        for row in pq.read_table(io.BytesIO(content)).to_pylist():
            key = (row["ts_id"], row["model"])
            if key in cells:
                raise LocalCloudError(f"{job.job_key} has two cells of series {key[0]}, model {key[1]}")
            cells[key] = {name: row[name] for name in _SAID}
    return cells


def compare(run_id: str, earlier: Cells, later: Cells) -> Comparison:
    """Compare cell by cell, on keys and values; floating-point numbers to the last bit."""
    missing, added = earlier.keys() - later.keys(), later.keys() - earlier.keys()
    different = {key for key in earlier.keys() & later.keys() if not _same(earlier[key], later[key])}
    found = sorted(missing | added | different)[:_SHOWN]
    return Comparison(
        run_id=run_id,
        cells=len(earlier),
        missing=len(missing),
        added=len(added),
        different=len(different),
        examples=tuple("/".join(key) for key in found),
    )


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Compare two cells; a forecast that is no number equals one that is none either."""
    return repr(sorted(one.items())) == repr(sorted(other.items()))

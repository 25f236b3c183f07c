"""What a rank has achieved, in one small object: the plane settles the run by it, people read the scores."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from forecast_worker.cells import Cell, CellStatus, Origin

# Enough to see what is wrong; the cells have them all.
_SAMPLE_ERRORS = 5
_SHOWN_CHARACTERS = 300


@dataclass(kw_only=True, slots=True)
class _Score:
    """Running sums of one model's cells."""

    n_cells: int = 0
    n_ok: int = 0
    n_scaled: int = 0
    seconds: float = 0.0
    mase: float = 0.0
    smape: float = 0.0

    def add(self, cell: Cell) -> None:
        self.n_cells += 1
        self.seconds += cell.seconds
        if cell.status is CellStatus.ERROR:
            return
        self.n_ok += 1
        self.smape += cell.smape or 0.0
        if cell.mase is not None:
            self.n_scaled += 1
            self.mase += cell.mase

    def as_json(self) -> dict[str, Any]:
        """Means over the series that count; null where none does."""
        return {
            "mase": self.mase / self.n_scaled if self.n_scaled else None,
            "smape": self.smape / self.n_ok if self.n_ok else None,
            "n_series": self.n_ok,
            "n_mase_excluded": self.n_ok - self.n_scaled,
            "n_error": self.n_cells - self.n_ok,
        }


@dataclass(kw_only=True, slots=True)
class Tally:
    """Counts cells as they come; the baseline is counted apart and is none of the run's cells."""

    _models: dict[str, _Score] = field(default_factory=dict)
    _baseline: _Score = field(default_factory=_Score)
    _errors: list[dict[str, str]] = field(default_factory=list)
    _peak_rss_bytes: int = 0

    @property
    def n_cells(self) -> int:
        """Return how many cells were counted."""
        return sum(score.n_cells for score in self._models.values())

    @property
    def n_ok(self) -> int:
        """Return how many of them have a forecast."""
        return sum(score.n_ok for score in self._models.values())

    def add(self, cells: Iterable[Cell]) -> None:
        """Count cells of the run."""
        for cell in cells:
            self._models.setdefault(cell.model, _Score()).add(cell)
            self._peak_rss_bytes = max(self._peak_rss_bytes, cell.peak_rss_bytes)
            if cell.error and len(self._errors) < _SAMPLE_ERRORS:
                error = cell.error[:_SHOWN_CHARACTERS]
                self._errors.append(
                    {"ts_id": cell.ts_id[:_SHOWN_CHARACTERS], "model": cell.model, "error": error}
                )

    def add_baseline(self, cells: Iterable[Cell]) -> None:
        """Count cells of the forecast that the models are compared with."""
        for cell in cells:
            self._baseline.add(cell)

    def failures(self) -> list[str]:
        """Return what the log is to say of cells that failed: why the first of them did, and how many more there are."""
        said = [f"{error['model']}: {error['error']}" for error in self._errors]
        more = self.n_cells - self.n_ok - len(said)
        return [*said, f"{more} more cells; the cells say why each did"] if more else said

    def as_json(self) -> dict[str, Any]:
        """Return counts and scores."""
        return {
            "n_cells": self.n_cells,
            "n_ok": self.n_ok,
            "n_error": self.n_cells - self.n_ok,
            "models": {model: score.as_json() for model, score in sorted(self._models.items())},
            "baseline": self._baseline.as_json(),
            "errors": self._errors,
            "cell_seconds": round(sum(score.seconds for score in self._models.values()), 6),
            "peak_rss_bytes": self._peak_rss_bytes,
        }


def to_json(tally: Tally, origin: Origin, **more: object) -> bytes:
    """Return the summary of a rank that has done all its cells; `more` adds fields (rank, rows, seconds)."""
    content = {
        "run_id": origin.run_id,
        "job_key": origin.job_key,
        "nonce": origin.nonce,
        "complete": True,
        **tally.as_json(),
        **more,
    }
    return json.dumps(content, indent=2, sort_keys=True, allow_nan=False).encode()

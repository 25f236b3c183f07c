"""The summaries of a job's many workers, joined into the job's own: each worker counts only its share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runtender.model import Summary

_SUMS = ("n_rows", "rows", "n_series", "n_mase_excluded", "n_error", "cell_seconds", "n_cells", "n_ok")
_MEANS = ("mase", "smape")
_MOST = ("peak_rss_bytes", "seconds")
_MOST_NAMED = 20


def join_shares(shares: Mapping[int, Summary], workers: int) -> Summary | None:
    """Return the sum of the workers' summaries, by rank; None where there is none.

    It is complete when every rank's is there and is. Counts are summed, scores are means over the series that count in each,
    of peaks and of seconds the greatest counts.
    """
    if not shares:
        return None
    missing = [rank for rank in range(workers) if rank not in shares or not shares[rank].complete]
    details = [shares[rank].detail for rank in sorted(shares)]
    detail = _joined(details)
    if missing:
        detail["ranks_missing"] = ", ".join(map(str, missing[:_MOST_NAMED])) + (
            f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        )
    return Summary(
        n_cells=sum(share.n_cells for share in shares.values()),
        n_ok=sum(share.n_ok for share in shares.values()),
        n_error=sum(share.n_error for share in shares.values()),
        complete=not missing,
        detail=detail,
    )


def _joined(details: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Join field by field; where nothing is known of a field, the first worker's word stands."""
    names = dict.fromkeys(name for detail in details for name in detail)
    return {name: _one(name, details) for name in names if name not in {"rank", "complete"}}


def _one(name: str, details: list[Mapping[str, Any]]) -> Any:
    values = [detail[name] for detail in details if detail.get(name) is not None]
    if not values:
        return None
    if all(isinstance(value, Mapping) for value in values):
        return _joined(values)
    if name in _SUMS:
        return sum(_numbers(values))
    if name in _MOST:
        return max(_numbers(values), default=None)
    if name in _MEANS:
        return _mean(name, details)
    return values[0]


def _mean(name: str, details: list[Mapping[str, Any]]) -> float | None:
    weighted = [(detail.get(name), _weight(name, detail)) for detail in details]
    counted = [(float(value), weight) for value, weight in weighted if value is not None and weight > 0]
    total = sum(weight for _, weight in counted)
    return sum(value * weight for value, weight in counted) / total if total else None


def _weight(name: str, detail: Mapping[str, Any]) -> float:
    """Return how many series a score is the mean of: those whose scale is zero have no MASE."""
    series, excluded = (sum(_numbers([detail.get(key)])) for key in ("n_series", "n_mase_excluded"))
    return series - excluded if name == "mase" else series


def _numbers(values: Iterable[Any]) -> list[float]:
    return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]

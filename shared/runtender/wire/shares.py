"""The summaries of a job's many workers, joined into the job's own: each worker counts only its share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from runtender.model import Summary
from runtender.wire.summaries import MAX_SUMMARY_BYTES

_SUMS = ("n_rows", "rows", "n_series", "n_mase_excluded", "n_error", "cell_seconds", "n_cells", "n_ok")
_MEANS = ("mase", "smape")
_MOST = ("peak_rss_bytes", "seconds")
# What a worker says of itself alone.
_OWN = frozenset({"rank", "complete"})
_MOST_NAMED = 20
# No worker can say more, and together they must not outgrow what a document holds.
_LARGEST = 2**53


def join_shares(shares: Mapping[int, Summary], workers: int) -> Summary | None:
    """Return the sum of the workers' summaries, by rank; None where there is none.

    It is complete when every rank's is there and is. Counts are summed, scores are means over the series that count in each,
    of peaks and of seconds the greatest counts.
    """
    if not shares:
        return None
    missing = [rank for rank in range(workers) if rank not in shares or not shares[rank].complete]
    details = [shares[rank].detail for rank in sorted(shares)]
    detail = _bounded(_joined(details))
    if missing:
        detail["ranks_missing"] = ", ".join(map(str, missing[:_MOST_NAMED])) + (
            f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        )
    return Summary(
        n_cells=_count(share.n_cells for share in shares.values()),
        n_ok=_count(share.n_ok for share in shares.values()),
        n_error=_count(share.n_error for share in shares.values()),
        complete=not missing,
        detail=detail,
    )


def _bounded(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields, in order, that have room: all workers together may say no more than one of them alone."""
    kept: dict[str, Any] = {}
    room = MAX_SUMMARY_BYTES
    for name, value in detail.items():
        size = len(json.dumps({name: value}))
        if size <= room:
            kept[name] = value
            room -= size
    return kept


def _joined(details: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Join field by field; where nothing is known of a field, the first worker's word stands."""
    told: dict[str, list[Any]] = {}
    for detail in details:
        for name, value in detail.items():
            told.setdefault(name, []).append(value)
    return {name: _one(name, values, details) for name, values in told.items() if name not in _OWN}


def _one(name: str, values: list[Any], details: list[Mapping[str, Any]]) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if all(isinstance(value, Mapping) for value in known):
        return _joined(known)
    if name in _SUMS:
        return _sum(known)
    if name in _MOST:
        return max(_numbers(known), default=None)
    if name in _MEANS:
        return _mean(name, details)
    return known[0]


def _mean(name: str, details: list[Mapping[str, Any]]) -> float | None:
    weighted = [(_numbers([detail.get(name)]), _weight(name, detail)) for detail in details]
    counted = [(value, weight) for values, weight in weighted for value in values if weight > 0]
    total = sum(weight for _, weight in counted)
    return sum(value * weight for value, weight in counted) / total if total else None


def _weight(name: str, detail: Mapping[str, Any]) -> float:
    """Return how many series a score is the mean of: those whose scale is zero have no MASE."""
    series, excluded = (_sum([detail.get(key)]) for key in ("n_series", "n_mase_excluded"))
    return series - excluded if name == "mase" else series


def _count(counts: Iterable[int]) -> int:
    return min(sum(counts), _LARGEST)


def _sum(values: Iterable[Any]) -> float:
    return max(-_LARGEST, min(sum(_numbers(values)), _LARGEST))


def _numbers(values: Iterable[Any]) -> list[float]:
    return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]

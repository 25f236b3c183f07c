"""In which order a worker takes its work: the heaviest first, so that no slot ends long after the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

# Seconds per row relative to a seasonal naive forecast, in round figures.
_MODEL_WEIGHTS = {
    "sarimax": 10.0,
    "auto_arima": 9.0,
    "prophet": 8.0,
    "neuralprophet": 8.0,
    "tft": 8.0,
    "patchtst": 7.0,
    "tide": 6.0,
    "tsmixer": 6.0,
    "xgboost": 4.0,
    "lightgbm": 3.0,
    "autoets": 2.5,
    "ets": 2.5,
    "theta": 1.5,
    "naive_mean": 1.0,
    "naive_seasonal": 1.0,
    "seasonal_naive": 1.0,
}
_OTHER_WEIGHT = 2.0


class Chunk(Protocol):
    """Series that one slot forecasts with one model; `rows` is their length in all."""

    @property
    def model(self) -> str: ...
    @property
    def rows(self) -> int: ...


C = TypeVar("C", bound=Chunk)


def heaviest_first(chunks: Iterable[C]) -> list[C]:
    """Order chunks by descending rows times model weight; equals keep their order."""
    return sorted(chunks, key=lambda chunk: -chunk.rows * _MODEL_WEIGHTS.get(chunk.model, _OTHER_WEIGHT))

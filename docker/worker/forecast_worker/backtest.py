"""Forecast what is known already: hold out the end of each series, forecast it, and measure."""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from forecast_worker.cells import Cell
from forecast_worker.metrics import Values, mase, naive_scale, smape
from forecast_worker.models import BASELINE, build
from runtender.worker.forecastable import series_fault
from runtender.worker.panel import Series
from runtender.worker.periods import Frequency


@dataclass(frozen=True, kw_only=True, slots=True)
class Backtest:
    """What every cell of a run shares: frequency, held-out horizon in periods, the models' parameters."""

    frequency: Frequency
    horizon: int
    model_params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def season(self, history: int) -> int:
        """Return the season to assume: 1 (none) unless the history holds two of them."""
        return self.frequency.season if history >= 2 * self.frequency.season else 1


# A forecast of the plan's horizon from a history, or why there is none.
_ForecastWith = Callable[[Values, str, Backtest], Values | str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Series that one slot forecasts with one model, and whose cells become one file."""

    model: str
    series: tuple[Series, ...]

    @property
    def rows(self) -> int:
        """Return the number of values in all series."""
        return sum(len(series) for series in self.series)


def run_chunk(chunk: Chunk, plan: Backtest) -> list[Cell]:
    """Compute the cells of a chunk; a cell that fails is a result like the others."""
    return [run_cell(series, chunk.model, plan) for series in chunk.series]


def run_cell(series: Series, model: str, plan: Backtest) -> Cell:
    """Forecast the held-out end of `series` with `model` and measure it; a fault becomes the cell's error."""
    return _backtest(series, model, plan, _library_forecast)


def run_baseline(series: Series, plan: Backtest) -> Cell:
    """Measure the last season repeated, which every model has to beat."""
    return _backtest(series, BASELINE, plan, _repeat_season)


def _backtest(series: Series, model: str, plan: Backtest, forecast_with: _ForecastWith) -> Cell:
    fault = series_fault(series, plan.horizon, plan.frequency)
    if fault:
        return Cell(ts_id=series.ts_id, model=model, error=fault)
    values = np.asarray(series.values, dtype=np.float64)
    history, actual = values[: -plan.horizon], values[-plan.horizon :]
    started = time.perf_counter()
    forecast = forecast_with(history, model, plan)
    seconds = time.perf_counter() - started
    cell = Cell(ts_id=series.ts_id, model=model, seconds=seconds, peak_rss_bytes=_peak_rss())
    if isinstance(forecast, str):
        return replace(cell, error=forecast)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = mase(actual, forecast, naive_scale(history, plan.season(len(history))))
        relative = smape(actual, forecast)
    if not np.isfinite([relative, scaled or 0.0]).all():
        return replace(cell, error=f"series {series.ts_id!r} has values too large to measure an error")
    return replace(
        cell,
        mase=scaled,
        smape=relative,
        ds=tuple(series.epochs[-plan.horizon :]),
        y=tuple(actual.tolist()),
        yhat=tuple(forecast.tolist()),
    )


def _library_forecast(history: Values, model: str, plan: Backtest) -> Values | str:
    try:
        with warnings.catch_warnings():
            # The libraries warn about fits; what counts of that is whether the forecast is finite.
            warnings.simplefilter("ignore")
            forecaster = build(model, plan.season(len(history)), plan.model_params.get(model, {}))
            forecast = np.asarray(forecaster.forecast(y=history, h=plan.horizon)["mean"], dtype=np.float64)
    except Exception as error:  # noqa: BLE001 - statsforecast raises Exception itself where no model fits a series
        return f"{type(error).__name__}: {error}"
    if forecast.shape != (plan.horizon,) or not np.isfinite(forecast).all():
        return f"{model} gave no finite forecast of {plan.horizon} periods"
    return forecast


def _repeat_season(history: Values, _model: str, plan: Backtest) -> Values:
    return np.resize(history[-plan.season(len(history)) :], plan.horizon)


def _peak_rss() -> int:
    # Linux counts it in KiB.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

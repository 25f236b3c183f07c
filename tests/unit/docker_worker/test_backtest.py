"""One cell: real models on the example panel, and every way a cell can fail."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

from forecast_worker.backtest import Backtest, Chunk, run_baseline, run_cell, run_chunk
from forecast_worker.cells import CellStatus
from runtender.worker.panel import Panel, Series
from runtender.worker.periods import frequency

DAY = 86_400


def a_plan(horizon: int = 28, **model_params: dict[str, object]) -> Backtest:
    daily = frequency("D")
    assert daily is not None
    return Backtest(frequency=daily, horizon=horizon, model_params=model_params)


def a_series(*values: float) -> Series:
    return Series(ts_id="s", epochs=array("q", range(0, DAY * len(values), DAY)), values=array("d", values))


@pytest.fixture
def atlanta(flights: Panel) -> Series:
    return next(series for series in flights.series if series.ts_id == "ATL")


def test_a_cell_holds_the_held_out_end_and_how_well_it_was_forecast(atlanta):
    cell = run_cell(atlanta, "autoets", a_plan())

    assert (cell.ts_id, cell.model, cell.status, cell.error) == ("ATL", "autoets", CellStatus.OK, None)
    assert cell.ds == tuple(atlanta.epochs[-28:])
    assert cell.y == tuple(atlanta.values[-28:])
    assert len(cell.yhat) == 28
    assert cell.smape is not None
    assert 0 < cell.smape < 30
    assert cell.mase is not None
    assert cell.mase > 0
    assert cell.seconds > 0
    assert cell.peak_rss_bytes > 50_000_000


def test_a_forecast_does_not_know_the_end(atlanta):
    other_end = Series(
        ts_id="ATL", epochs=atlanta.epochs, values=array("d", [*atlanta.values[:-28], *range(28)])
    )

    assert run_cell(atlanta, "theta", a_plan()).yhat == run_cell(other_end, "theta", a_plan()).yhat


def test_the_baseline_is_the_librarys_seasonal_naive(atlanta):
    baseline, cell = run_baseline(atlanta, a_plan()), run_cell(atlanta, "naive_seasonal", a_plan())

    assert baseline.yhat == cell.yhat
    assert (baseline.mase, baseline.smape) == (cell.mase, cell.smape)


def test_a_history_shorter_than_two_seasons_has_none():
    assert run_baseline(a_series(1, 2, 3, 4, 5, 6, 7, 8, 9, 9), a_plan(2)).yhat == (8, 8)


def test_a_constant_history_has_no_mase():
    cell = run_cell(a_series(*[2.0] * 30), "naive_mean", a_plan(7))

    assert (cell.status, cell.mase, cell.smape) == (CellStatus.OK, None, 0)


@pytest.mark.parametrize(
    ("series", "model", "parameters", "words"),
    [
        pytest.param(
            a_series(1, 2, 3), "theta", {}, "series 's' has 3 values; a horizon of 7", id="too short"
        ),
        pytest.param(
            Series(
                ts_id="s",
                epochs=array("q", [DAY * day for day in range(21) if day != 4]),
                values=array("d", range(20)),
            ),
            "theta",
            {},
            "1 gaps or doubles, the first after 1970-01-04",
            id="a gap",
        ),
        pytest.param(
            a_series(*range(10)), "autoets", {}, "NotImplementedError: tiny datasets", id="the model refuses"
        ),
        pytest.param(
            a_series(*range(-15, 15)),
            "autoets",
            {"model": "ZZM"},
            "Exception: no model able to be fitted",
            id="no fit",
        ),
        pytest.param(a_series(*range(30)), "autoets", {"model": "?"}, "Error: ", id="a bad parameter"),
        pytest.param(
            a_series(*[1.7e308] * 29, -1.7e308),
            "naive_mean",
            {},
            "naive_mean gave no finite forecast of 7 periods",
            id="no finite forecast",
        ),
        pytest.param(
            a_series(*[1e308, -1e308] * 15),
            "naive_seasonal",
            {},
            "series 's' has values too large to measure an error",
            id="no finite error",
        ),
    ],
)
def test_a_cell_that_fails_says_why(series, model, parameters, words):
    cell = run_cell(series, model, a_plan(7, **{model: parameters}))

    assert cell.status is CellStatus.ERROR
    assert words in str(cell.error)
    assert (cell.yhat, cell.mase, cell.smape) == ((), None, None)


def test_a_chunk_gives_a_cell_per_series_whatever_happens_to_one():
    chunk = Chunk(model="naive_mean", series=(a_series(1), a_series(*np.arange(30.0))))

    cells = run_chunk(chunk, a_plan(7))

    assert chunk.rows == 31
    assert [cell.status for cell in cells] == [CellStatus.ERROR, CellStatus.OK]

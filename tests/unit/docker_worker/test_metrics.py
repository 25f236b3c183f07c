"""MASE and sMAPE, by hand and at their undefined ends."""

from __future__ import annotations

import numpy as np
import pytest

from forecast_worker.metrics import mase, naive_scale, smape


@pytest.mark.parametrize(
    ("history", "season", "expected"),
    [
        pytest.param([1, 2, 4, 4], 1, 1.0, id="steps of 1, 2 and 0"),
        pytest.param([1, 5, 2, 5, 4, 8], 2, 1.5, id="a season of two: 1, 0, 2, 3"),
        pytest.param([3, 3, 3], 1, 0.0, id="a constant history has no scale"),
    ],
)
def test_the_scale_is_the_naive_forecasts_own_error(history, season, expected):
    assert naive_scale(np.array(history, dtype=float), season) == expected


@pytest.mark.parametrize(
    ("actual", "forecast", "scale", "expected"),
    [
        pytest.param([1, 2], [2, 4], 0.5, 3.0, id="errors 1 and 2 by 0.5"),
        pytest.param([1, 2], [1, 2], 2.0, 0.0, id="a perfect forecast"),
        pytest.param([1, 2], [1, 2], 0.0, None, id="no scale, no MASE, not even for a perfect forecast"),
    ],
)
def test_mase(actual, forecast, scale, expected):
    assert mase(np.array(actual, dtype=float), np.array(forecast, dtype=float), scale) == expected


@pytest.mark.parametrize(
    ("actual", "forecast", "expected"),
    [
        pytest.param([100, 50], [100, 50], 0.0, id="a perfect forecast"),
        pytest.param([100], [50], 200 / 3, id="half of it"),
        pytest.param([0, 0], [0, 0], 0.0, id="nothing against nothing counts 0"),
        pytest.param([0, 10], [5, 10], 100.0, id="something against nothing counts 200"),
        pytest.param([-4], [4], 200.0, id="the wrong sign counts 200"),
    ],
)
def test_smape(actual, forecast, expected):
    assert smape(np.array(actual, dtype=float), np.array(forecast, dtype=float)) == pytest.approx(expected)

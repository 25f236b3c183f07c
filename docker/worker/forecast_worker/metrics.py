"""How far a forecast is off: MASE and sMAPE, with their undefined cases settled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


def naive_scale(history: Values, season: int) -> float:
    """Return the mean absolute error of the in-sample seasonal naive forecast, the denominator of MASE."""
    return float(np.mean(np.abs(history[season:] - history[:-season])))


def mase(actual: Values, forecast: Values, scale: float) -> float | None:
    """Return the mean absolute scaled error (Hyndman and Koehler, 2006); None where the scale is zero."""
    if scale == 0:
        return None
    return float(np.mean(np.abs(actual - forecast))) / scale


def smape(actual: Values, forecast: Values) -> float:
    """Return the symmetric mean absolute percentage error, 0 to 200 per cent; 0 against 0 counts 0."""
    size = np.abs(actual) + np.abs(forecast)
    error = 2 * np.abs(actual - forecast)
    return 100 * float(np.mean(np.divide(error, size, out=np.zeros_like(error), where=size > 0)))

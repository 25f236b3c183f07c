"""Which series of a panel can be forecast, in the same words for the worker and for `submit`."""

from __future__ import annotations

from runtender.worker.panel import MIN_HISTORY, Panel, PanelError, Series, check_horizon, too_short
from runtender.worker.periods import Frequency

# Enough to see what is wrong; the cells have them all.
_SHOWN = 3
_WHERE = "data.source_table"
_REMEDY = (
    "fill the gaps, merge the doubles, or write the frequency that the panel has as data.freq; "
    "a short series needs more history or a shorter data.horizon"
)


def series_fault(series: Series, horizon: int, frequency: Frequency) -> str | None:
    """Say why no model can forecast `series` and be measured on its last `horizon` values; None: one may."""
    if len(series) < horizon + MIN_HISTORY:
        return too_short(series.ts_id, len(series), horizon)
    return frequency.fault(series)


def check_series(panel: Panel, horizon: int, frequency: Frequency) -> str:
    """Return in a sentence which series cannot be forecast and what to do about it, empty where all can.

    Raises PanelError with the same words where none can.
    """
    check_horizon(panel, horizon)
    faults = [fault for series in panel.series if (fault := series_fault(series, horizon, frequency))]
    if not faults:
        return ""
    more = [f"{len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
    said = ", and ".join([*faults[:_SHOWN], *more])
    problem = (
        f"{len(faults)} of {len(panel.series)} series cannot be forecast by the reference worker: {said}"
    )
    error = PanelError(_WHERE, problem, _REMEDY)
    if len(faults) == len(panel.series):
        raise error
    return str(error)

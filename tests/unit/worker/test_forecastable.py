"""Which series can be forecast: what is said of the others, and when there is nothing left to do."""

from __future__ import annotations

from array import array

import pytest

from runtender.worker.forecastable import check_series, series_fault
from runtender.worker.panel import Panel, PanelError, Series
from runtender.worker.periods import Frequency, frequency

DAY = 86_400
REMEDY = (
    "fill the gaps, merge the doubles, or write the frequency that the panel has as data.freq; "
    "a short series needs more history or a shorter data.horizon"
)


def daily() -> Frequency:
    found = frequency("D")
    assert found is not None
    return found


def a_series(name: str, *days: int) -> Series:
    return Series(
        ts_id=name, epochs=array("q", [day * DAY for day in days]), values=array("d", [1.0] * len(days))
    )


WHOLE = a_series("whole", 0, 1, 2, 3, 4)
SHORT = a_series("short", 0, 1, 2)
GAPPED = a_series("gapped", 0, 1, 3, 4, 5)
DOUBLED = a_series("doubled", 0, 1, 1, 2, 3)


def test_a_whole_series_that_is_long_enough_has_no_fault() -> None:
    assert series_fault(WHOLE, 3, daily()) is None


def test_a_panel_of_whole_series_needs_no_words() -> None:
    assert check_series(Panel(series=(WHOLE,)), 3, daily()) == ""


def test_what_cannot_be_forecast_is_counted_and_said_with_its_reason_and_remedy() -> None:
    assert check_series(Panel(series=(DOUBLED, GAPPED, SHORT, WHOLE)), 3, daily()) == (
        "data.source_table: 3 of 4 series cannot be forecast by the reference worker: "
        "series 'doubled' does not have one value per period of 'D': 1 gaps or doubles, the first after 1970-01-02T00:00, "
        "and series 'gapped' does not have one value per period of 'D': 1 gaps or doubles, "
        "the first after 1970-01-02T00:00, "
        f"and series 'short' has 3 values; a horizon of 3 needs at least 5; {REMEDY}"
    )


@pytest.mark.parametrize(
    "series", [(GAPPED,), (DOUBLED, GAPPED, SHORT)], ids=["one", "each by its own fault"]
)
def test_a_panel_without_a_series_that_can_be_forecast_is_an_error(series: tuple[Series, ...]) -> None:
    with pytest.raises(
        PanelError, match=rf"^data.source_table: {len(series)} of {len(series)} series cannot"
    ):
        check_series(Panel(series=series), 3, daily())


def test_a_horizon_too_long_for_all_is_the_horizons_fault() -> None:
    with pytest.raises(PanelError, match=r"^data\.horizon: "):
        check_series(Panel(series=(WHOLE, GAPPED)), 4, daily())

"""Frequencies: seasons, and series that miss or double a period."""

from __future__ import annotations

from array import array
from datetime import UTC, datetime

import pytest

from runtender.worker.panel import Series
from runtender.worker.periods import Frequency, frequency, unknown_frequency


def a_series(*moments: str) -> Series:
    epochs = [int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()) for moment in moments]
    return Series(ts_id="s", epochs=array("q", epochs), values=array("d", [0.0] * len(epochs)))


def a_frequency(name: str) -> Frequency:
    found = frequency(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "season"),
    [("min", 60), ("h", 24), ("D", 7), ("B", 5), ("W-SUN", 52), ("MS", 12), ("QE-DEC", 4), ("YS", 1)],
)
def test_a_frequency_has_a_season(name, season):
    assert a_frequency(name).season == season


def test_what_is_no_frequency_is_none():
    assert frequency("fortnight") is None
    assert str(unknown_frequency("fortnight")).startswith(
        "data.freq: the reference worker does not know 'fortnight'; use one of min, h, H, D, B, W, "
    )


@pytest.mark.parametrize(
    ("name", "moments"),
    [
        pytest.param("min", ("2024-01-01T00:00", "2024-01-01T00:01"), id="minutes"),
        pytest.param("h", ("2024-03-31T00:00", "2024-03-31T01:00", "2024-03-31T02:00"), id="hours"),
        pytest.param("D", ("2024-02-28", "2024-02-29", "2024-03-01"), id="days of a leap year"),
        pytest.param("D", ("2024-02-28T06:00", "2024-02-29T06:00"), id="days at six"),
        pytest.param("B", ("2024-05-03", "2024-05-06", "2024-05-07"), id="business days over a weekend"),
        pytest.param("W", ("2024-01-03", "2024-01-10", "2024-01-17"), id="weeks from a Wednesday"),
        pytest.param("ME", ("2023-12-31", "2024-01-31", "2024-02-29"), id="month ends"),
        pytest.param("Q", ("2023-11-30", "2024-02-29", "2024-05-31"), id="quarters that end in February"),
        pytest.param("YS", ("1969-01-01", "1970-01-01", "1971-01-01"), id="years around 1970"),
        pytest.param("D", ("2024-01-01",), id="a single value"),
        pytest.param("D", (), id="no value"),
        pytest.param(
            "B", ("1969-12-31", "1970-01-01", "1970-01-02", "1970-01-05"), id="business days around 1970"
        ),
    ],
)
def test_a_whole_series_has_no_fault(name, moments):
    assert a_frequency(name).fault(a_series(*moments)) is None


@pytest.mark.parametrize(
    ("name", "moments", "words"),
    [
        pytest.param(
            "D",
            ("2024-01-01", "2024-01-03", "2024-01-03"),
            "2 gaps or doubles, the first after 2024-01-01",
            id="days",
        ),
        pytest.param("B", ("2024-05-03", "2024-05-07"), "1 gaps or doubles", id="a Monday is missing"),
        pytest.param(
            "B", ("2024-05-03", "2024-05-04", "2024-05-06"), "1 gaps or doubles", id="a Saturday too many"
        ),
        pytest.param("W", ("2024-01-03", "2024-01-17"), "1 gaps or doubles", id="a week is missing"),
        pytest.param("MS", ("2024-01-01", "2024-01-02"), "1 gaps or doubles", id="days, not months"),
    ],
)
def test_a_gap_or_double_is_said_with_its_place(name, moments, words):
    assert words in str(a_frequency(name).fault(a_series(*moments)))

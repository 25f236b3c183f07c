"""What a frequency means: how long a season is, and whether a series has exactly one value per period.

`submit` asks before a machine is paid for, the reference worker again before it forecasts, so this needs the standard
library only.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from runtender.worker.panel import PanelError, Series

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
# The first of January 1970 was a Thursday.
_EPOCHS_WEEKDAY = 3
_DAYS, _BUSINESS_DAYS = 7, 5

_Numbered = Callable[[int], int]
"""From seconds since 1970 to a number that grows by one with each calendar unit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frequency:
    """A frequency: how many periods a season has, and how many of a calendar unit a period has."""

    name: str
    season: int
    unit: _Numbered
    units: int = 1

    def fault(self, series: Series) -> str | None:
        """Say where `series` departs from one value per period, or None if it does nowhere."""
        numbers = self._numbers(series.epochs)
        wrong = [at for at in range(1, len(numbers)) if numbers[at] - numbers[at - 1] != 1]
        if not wrong:
            return None
        first = _moment(series.epochs[wrong[0] - 1]).replace(tzinfo=None)
        return (
            f"series {series.ts_id!r} does not have one value per period of {self.name!r}: "
            f"{len(wrong)} gaps or doubles, the first after {first.isoformat(timespec='minutes')}"
        )

    def _numbers(self, epochs: array[int]) -> Sequence[int]:
        """Number the periods from the first moment on, so that a week or a quarter may begin anywhere."""
        if not epochs:
            return ()
        first = self.unit(epochs[0])
        return [(self.unit(epoch) - first) // self.units for epoch in epochs]


def frequency(name: str) -> Frequency | None:
    """Return the frequency called `name`; an anchor as in `W-SUN` changes nothing. None: not known."""
    return _FREQUENCIES.get(name.partition("-")[0])


def unknown_frequency(name: str) -> PanelError:
    """Describe a frequency that `frequency` does not know."""
    known = ", ".join(_FREQUENCIES)
    return PanelError("data.freq", f"the reference worker does not know {name!r}", f"use one of {known}")


def _minute(epoch: int) -> int:
    return epoch // _MINUTE


def _hour(epoch: int) -> int:
    return epoch // _HOUR


def _day(epoch: int) -> int:
    return epoch // _DAY


def _business_day(epoch: int) -> int:
    weeks, day = divmod(_day(epoch) + _EPOCHS_WEEKDAY, _DAYS)
    # A Saturday or Sunday has the number of the Monday after, so that it shows as a double.
    return weeks * _BUSINESS_DAYS + min(day, _BUSINESS_DAYS)


def _month(epoch: int) -> int:
    moment = _moment(epoch)
    return moment.year * 12 + moment.month


def _year(epoch: int) -> int:
    return _moment(epoch).year


def _moment(epoch: int) -> datetime:
    return _EPOCH + timedelta(seconds=epoch)


_FREQUENCIES = {
    frequency.name: frequency
    for frequency in (
        Frequency(name="min", season=60, unit=_minute),
        Frequency(name="h", season=24, unit=_hour),
        Frequency(name="H", season=24, unit=_hour),
        Frequency(name="D", season=7, unit=_day),
        Frequency(name="B", season=5, unit=_business_day),
        Frequency(name="W", season=52, unit=_day, units=7),
        Frequency(name="M", season=12, unit=_month),
        Frequency(name="MS", season=12, unit=_month),
        Frequency(name="ME", season=12, unit=_month),
        Frequency(name="Q", season=4, unit=_month, units=3),
        Frequency(name="QS", season=4, unit=_month, units=3),
        Frequency(name="QE", season=4, unit=_month, units=3),
        Frequency(name="Y", season=1, unit=_year),
        Frequency(name="YS", season=1, unit=_year),
        Frequency(name="YE", season=1, unit=_year),
    )
}

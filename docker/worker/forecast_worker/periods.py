"""What a frequency means: how long a season is, and whether a series has exactly one value per period."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from runtender.worker.panel import Series

_BUSINESS_DAY = "B"


@dataclass(frozen=True, kw_only=True, slots=True)
class Frequency:
    """A frequency: how many periods a season has, and how many of a calendar unit (numpy's) a period has."""

    name: str
    season: int
    unit: str
    units: int = 1

    def fault(self, series: Series) -> str | None:
        """Say where `series` departs from one value per period, or None if it does nowhere."""
        moments = np.asarray(series.epochs, dtype="datetime64[s]")
        wrong = np.flatnonzero(np.diff(self._number(moments)) != 1)
        if not wrong.size:
            return None
        first = moments[wrong[0]].astype("datetime64[m]")
        return (
            f"series {series.ts_id!r} does not have one value per period of {self.name!r}: "
            f"{wrong.size} gaps or doubles, the first after {first}"
        )

    def _number(self, moments: npt.NDArray[np.datetime64]) -> npt.NDArray[np.int64]:
        """Number the periods from the first moment on, so that a week or a quarter may begin anywhere."""
        if self.unit == _BUSINESS_DAY:
            days = moments.astype("datetime64[D]")
            return np.busday_count(days[:1], days)
        units = moments.astype(f"datetime64[{self.unit}]").astype(np.int64)
        numbers: npt.NDArray[np.int64] = (units - units[:1]) // self.units
        return numbers


_FREQUENCIES = {
    frequency.name: frequency
    for frequency in (
        Frequency(name="min", season=60, unit="m"),
        Frequency(name="h", season=24, unit="h"),
        Frequency(name="H", season=24, unit="h"),
        Frequency(name="D", season=7, unit="D"),
        Frequency(name="B", season=5, unit=_BUSINESS_DAY),
        Frequency(name="W", season=52, unit="D", units=7),
        Frequency(name="M", season=12, unit="M"),
        Frequency(name="MS", season=12, unit="M"),
        Frequency(name="ME", season=12, unit="M"),
        Frequency(name="Q", season=4, unit="M", units=3),
        Frequency(name="QS", season=4, unit="M", units=3),
        Frequency(name="QE", season=4, unit="M", units=3),
        Frequency(name="Y", season=1, unit="Y"),
        Frequency(name="YS", season=1, unit="Y"),
        Frequency(name="YE", season=1, unit="Y"),
    )
}


def frequency(name: str) -> Frequency | None:
    """Return the frequency called `name`; an anchor as in `W-SUN` changes nothing. None: not known."""
    return _FREQUENCIES.get(name.partition("-")[0])


def known_frequencies() -> tuple[str, ...]:
    """Return the names that `frequency` knows."""
    return tuple(_FREQUENCIES)

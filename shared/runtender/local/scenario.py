"""Scenarios: the weather of the local cloud, read from a YAML file.

    name: first-placement-dry
    description: The first zone has no machines for the first ten minutes.
    compute:
      stockouts:
        - placement: 0          # also: zone, region, attempt; what is left out matches everything
          until: 10m            # also: after, first (only the first n inserts that match)
          answer: operation     # also: http (refused at once), late (accepted, then stopped)
          zones_available: [us-central1-b]

Times count from the start of the cloud, on its own clock: a time scale makes them pass faster, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from runtender.errors import Fault, Rejected

_DURATION = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_MAX_STOCKOUTS = 1000
"""Far more than a hand-written file has; every insert looks at all of them."""


class Shape(StrEnum):
    """How a stock-out shows.

    OPERATION: the insert is taken and its operation ends with the error. HTTP: the insert itself is refused. LATE: the
    insert succeeds and the machine stops before it was ever up.
    """

    OPERATION = "operation"
    HTTP = "http"
    LATE = "late"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stockout:
    """Inserts that find no machine. None matches everything; `first` bounds how many are hit."""

    zone: str | None = None
    region: str | None = None
    placement: int | None = None
    attempt: int | None = None
    first: int | None = None
    after: timedelta = timedelta(0)
    until: timedelta | None = None
    shape: Shape = Shape.OPERATION
    zones_available: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """One scenario. The default is fair weather."""

    name: str = "fair"
    description: str = ""
    stockouts: tuple[Stockout, ...] = ()


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file. Raises `Rejected` naming every fault in it, `OSError` when it cannot be read."""
    return parse_scenario(path.read_text(encoding="utf-8"))


def parse_scenario(text: str) -> Scenario:
    """Read a scenario from YAML. Raises `Rejected` naming every fault with its path."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Rejected.because("", f"the scenario is not YAML: {error}") from error
    reader = _Reader()
    fields = reader.fields("", document, {"name", "description", "compute"})
    compute = reader.fields("compute", fields.get("compute", {}), {"stockouts"})
    scenario = Scenario(
        name=reader.text("name", fields.get("name", "unnamed")),
        description=reader.text("description", fields.get("description", "")),
        stockouts=reader.stockouts("compute.stockouts", compute.get("stockouts", [])),
    )
    reader.finish()
    return scenario


class _Reader:
    """Reads values of a known kind and collects what is wrong with the others."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def finish(self) -> None:
        if self._faults:
            raise Rejected(self._faults)

    def fields(self, path: str, value: object, known: set[str]) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            self._fault(path, f"{value!r} is not a mapping", f"write {', '.join(sorted(known))} below it")
            return {}
        for key in value:
            if key not in known:
                self._fault(
                    f"{path}.{key}".lstrip("."), "is not known", f"use one of {', '.join(sorted(known))}"
                )
        return value

    def text(self, path: str, value: object) -> str:
        if isinstance(value, str):
            return value
        self._fault(path, f"{value!r} is not text", "put it in quotes")
        return ""

    def whole(self, path: str, value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self._fault(path, f"{value!r} is not a whole number", "write 0, 1, 2 ...")
        return 0

    def duration(self, path: str, value: object) -> timedelta:
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if match:
            return timedelta(**{_UNITS[match[2]]: int(match[1])})
        self._fault(path, f"{value!r} is not a duration", 'write e.g. "90s", "10m", "2h"')
        return timedelta(0)

    def shape(self, path: str, value: object) -> Shape:
        if isinstance(value, str) and value in set(Shape):
            return Shape(value)
        self._fault(path, f"{value!r} is not known", f"use one of {', '.join(Shape)}")
        return Shape.OPERATION

    def texts(self, path: str, value: object) -> tuple[str, ...]:
        if isinstance(value, list):
            return tuple(self.text(f"{path}[{index}]", item) for index, item in enumerate(value))
        self._fault(path, f"{value!r} is not a list", "write e.g. [us-central1-b]")
        return ()

    def stockouts(self, path: str, value: object) -> tuple[Stockout, ...]:
        if not isinstance(value, list) or len(value) > _MAX_STOCKOUTS:
            self._fault(path, "is not a list", f"write at most {_MAX_STOCKOUTS} entries, each after a dash")
            return ()
        return tuple(self._stockout(f"{path}[{index}]", item) for index, item in enumerate(value))

    def _stockout(self, path: str, value: object) -> Stockout:
        read: dict[str, tuple[str, Callable[[str, object], Any]]] = {
            "zone": ("zone", self.text),
            "region": ("region", self.text),
            "placement": ("placement", self.whole),
            "attempt": ("attempt", self.whole),
            "first": ("first", self.whole),
            "after": ("after", self.duration),
            "until": ("until", self.duration),
            "answer": ("shape", self.shape),
            "zones_available": ("zones_available", self.texts),
        }
        fields = self.fields(path, value, set(read))
        values = {
            name: reader(f"{path}.{key}", fields[key])
            for key, (name, reader) in read.items()
            if key in fields
        }
        return Stockout(**values)

    def _fault(self, field: str, problem: str, remedy: str) -> None:
        self._faults.append(Fault(field=field, problem=problem, remedy=remedy))

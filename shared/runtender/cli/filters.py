"""Choosing and ordering runs for `runtender list`: `--filter FIELD=PATTERN` and `--sort FIELD`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

import click

from runtender.model import Run

# How a table shows that there is nothing; the same word finds it.
_NOTHING = "-"
_LABEL = "label."

_FIELDS: Mapping[str, Callable[[Run], Iterable[str | None]]] = {
    "run": lambda run: [run.run_id],
    "status": lambda run: [run.status],
    "outcome": lambda run: [run.outcome],
    "kind": lambda run: [run.kind],
    "requested_by": lambda run: [run.requested_by],
    "family": lambda run: run.families,
    "phase": lambda run: [entry.phase for entry in run.families.values()],
    "reason": lambda run: [entry.reason for entry in run.families.values()],
    "cleanup": lambda run: [entry.cleanup for entry in run.families.values()],
}

SortKey = Callable[[Run, datetime], Any]


def took(run: Run, now: datetime) -> timedelta:
    """Return how long a run has taken, so far or until its end."""
    return (run.finished_at or now) - run.created_at


_SORT_KEYS: Mapping[str, SortKey] = {
    "created": lambda run, _now: run.created_at,
    "finished": lambda run, now: run.finished_at or now,
    "took": took,
    "run": lambda run, _now: run.run_id,
    "status": lambda run, _now: run.status,
    "outcome": lambda run, _now: run.outcome or "",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """A field that one of its values must match (or with `negated`, none); `*` in the pattern is any text."""

    field: str
    pattern: str
    negated: bool

    def takes(self, run: Run) -> bool:
        """True for a run that is wanted."""
        return any(fnmatchcase(value, self.pattern) for value in self._values(run)) is not self.negated

    def _values(self, run: Run) -> list[str]:
        if self.field.startswith(_LABEL):
            values: Iterable[str | None] = [run.labels.get(self.field.removeprefix(_LABEL))]
        else:
            values = _FIELDS[self.field](run)
        return [(value or _NOTHING).lower() for value in values]


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """How runs are sorted."""

    key: str
    descending: bool

    def sorted(self, runs: Iterable[Run], now: datetime) -> list[Run]:
        """Return the runs in this order."""
        return sorted(runs, key=lambda run: _SORT_KEYS[self.key](run, now), reverse=self.descending)


NEWEST_FIRST = Order(key="created", descending=True)
FILTER_HELP = f"FIELD=PATTERN or FIELD!=PATTERN. Fields: {', '.join(_FIELDS)}, label.KEY."
SORT_HELP = f"One of {', '.join(_SORT_KEYS)}; with - before it, the other way round."


def filters(_ctx: click.Context, _param: click.Parameter, value: Sequence[str]) -> tuple[Filter, ...]:
    """Read any number of filters; all of them must take a run."""
    return tuple(map(_filter, value))


def order(_ctx: click.Context, _param: click.Parameter, value: str) -> Order:
    """Read a sort key."""
    key = value.removeprefix("-")
    if key not in _SORT_KEYS:
        raise click.BadParameter(f"{key!r} is no field to sort by; use one of {', '.join(_SORT_KEYS)}")
    return Order(key=key, descending=value.startswith("-"))


def _filter(text: str) -> Filter:
    field, separator, pattern = text.partition("=")
    negated = field.endswith("!")
    field = field.removesuffix("!")
    if not separator or not (field in _FIELDS or (field.startswith(_LABEL) and field != _LABEL)):
        raise click.BadParameter(f"{text!r} is not FIELD=PATTERN; fields: {', '.join(_FIELDS)}, label.KEY")
    return Filter(field=field, pattern=pattern.lower(), negated=negated)

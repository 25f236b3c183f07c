"""What every measurement prints: figures, and in what is behind them, calls by service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PREFIXES = ("compute.", "container.projects.locations.", "kubernetes.")


def figure(
    name: str, value: float, *, unit: str = "", aim: float | None = None, detail: str = ""
) -> dict[str, Any]:
    """Return a figure: `aim` is the most that the value should be, `detail` what is behind it."""
    return {"figure": name, "value": value, "unit": unit, "aim": aim, "detail": detail}


def calls_of(services: str | tuple[str, ...], bill: Mapping[str, int]) -> dict[str, int]:
    """Return those calls on a bill that went to the services whose names begin so."""
    return {call: times for call, times in sorted(bill.items()) if call.startswith(services)}


def listed(calls: Mapping[str, int], per: int = 1) -> str:
    """Return calls in words, each by its short name."""
    return ", ".join(f"{_short(call)} {times // per}" for call, times in calls.items())


def _short(call: str) -> str:
    return next((call.removeprefix(prefix) for prefix in _PREFIXES if call.startswith(prefix)), call)

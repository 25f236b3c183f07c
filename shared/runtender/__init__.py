"""Tend batch forecasts on Google Cloud: `from runtender import submit, get, watch, cancel` (see `runtender.api`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtender.api import cancel, get, submit, watch

__all__ = ["cancel", "get", "submit", "watch"]


def __getattr__(name: str) -> Any:
    """Look up the Python API on first use: the functions import this package at each cold start, and need none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from runtender import api  # noqa: PLC0415 - see above

    return getattr(api, name)

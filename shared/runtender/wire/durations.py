"""Durations as people write them at the edge: `"90m"`, `"1h30m"`, `"45s"`."""

from __future__ import annotations

import re
from datetime import timedelta

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_PART = re.compile(r"(\d{1,9})([dhms])")
_WHOLE = re.compile(r"(?:\d{1,9}[dhms])+", re.ASCII)
_LONGEST = timedelta(days=120)


def parse_duration(text: object) -> timedelta:
    """Read a duration; ValueError says what to write. At most 120 days (Compute Engine's longest `maxRunDuration`)."""
    if not isinstance(text, str) or not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; write e.g. '90m', '1h30m' or '45s'")
    span = timedelta(seconds=sum(int(count) * _SECONDS[unit] for count, unit in _PART.findall(text)))
    if not timedelta() < span <= _LONGEST:
        raise ValueError(f"{text!r} is out of range; write more than '0s' and at most '120d'")
    return span


def format_duration(span: timedelta) -> str:
    """Write a duration in the largest units that say it exactly, to the second."""
    left = int(span.total_seconds())
    parts = []
    for unit, size in _SECONDS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"

"""Words for the terminal: text that came from elsewhere made harmless, moments and spans of time made readable."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

# An API's message or a worker's log may hold anything; printed as it is, it could steer the reader's terminal.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BREAKS = re.compile(r"\r\n?")


def plain(text: str) -> str:
    """Return `text` without control characters but for line feeds and tabs; a progress bar's returns become lines."""
    return _CONTROLS.sub("", _ESCAPES.sub("", _BREAKS.sub("\n", text)))


def one_line(text: str) -> str:
    """Return `text` as one line: all white space as single spaces, no control characters."""
    return " ".join(plain(text).split())


def moment(at: datetime | None) -> str:
    """Return a moment in UTC, to the second; `-` for none."""
    return "-" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def span(length: timedelta | float | None) -> str:
    """Return a span (seconds or timedelta) as `42s`, `4m05s` or `1h05m`; `-` for none."""
    if length is None:
        return "-"
    seconds = round(length.total_seconds() if isinstance(length, timedelta) else length)
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    minutes, rest = divmod(seconds, 60)
    if not minutes:
        return f"{sign}{rest}s"
    hours, rest_minutes = divmod(minutes, 60)
    return f"{sign}{hours}h{rest_minutes:02}m" if hours else f"{sign}{minutes}m{rest:02}s"

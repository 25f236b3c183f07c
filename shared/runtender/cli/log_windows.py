"""What is new in a worker's log: each upload is the end of one growing text, seen through a window of some size."""

from __future__ import annotations

# The window of an upload while the worker runs; no older window is larger.
_WINDOW_BYTES = 64 * 1024


def appended(before: bytes, after: bytes) -> bytes:
    """Return what `after` holds beyond `before`, the earlier window.

    Where the text repeats itself in the way that a window cannot tell, the shorter piece is taken for new. Where the two
    windows have nothing in common, all of the later one is.
    """
    at = after.find(before)
    if at >= 0:
        return after[at + len(before) :]
    return after[_overlap(before[-_WINDOW_BYTES:], after) :]


def last_lines(text: str, count: int) -> str:
    """Return the last lines of a text, with the line feeds that they have."""
    return "".join(text.splitlines(keepends=True)[-count:]) if count else ""


def _overlap(before: bytes, after: bytes) -> int:
    """Return the length of the longest end of `before` that `after` begins with (Knuth, Morris and Pratt)."""
    pattern = after[: len(before)]
    borders = _borders(pattern)
    matched = 0
    for byte in before:
        while matched and (matched == len(pattern) or pattern[matched] != byte):
            matched = borders[matched - 1]
        if matched < len(pattern) and pattern[matched] == byte:
            matched += 1
    return matched


def _borders(pattern: bytes) -> list[int]:
    """Return for each beginning of a pattern the length of its longest proper end that is also its beginning."""
    borders = [0] * len(pattern)
    matched = 0
    for index in range(1, len(pattern)):
        while matched and pattern[matched] != pattern[index]:
            matched = borders[matched - 1]
        if pattern[matched] == pattern[index]:
            matched += 1
        borders[index] = matched
    return borders

"""Sets of completion indexes as a Job's status writes them: `0,2,4-7`."""

from __future__ import annotations

from collections.abc import Iterable


def parse_indexes(text: str) -> set[int]:
    """Read a set of indexes."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Write a set of indexes: three or more in a row as their ends."""
    parts: list[str] = []
    ordered = sorted(indexes)
    start = 0
    for position, index in enumerate(ordered):
        last = position + 1 == len(ordered)
        if last or ordered[position + 1] != index + 1:
            row = ordered[start : position + 1]
            parts += [f"{row[0]}-{row[-1]}"] if len(row) > 2 else [str(one) for one in row]
            start = position + 1
    return ",".join(parts)

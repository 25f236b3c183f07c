"""What a table for people is made of, as plain values: commands say what is shown, `drawing` how it looks.

So a command loads rich only when somebody wants a table of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runtender.cli.text import one_line


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows below the names of their columns. Columns in `numbers` are aligned to the right; only the last one wraps."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Names and their values in two columns."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """A line of text, wrapped where a terminal is too narrow for it."""

    text: str
    bold: bool = False


# Text is printed as it is.
Part = Table | Facts | Words | str


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[str] = ()) -> Table:
    """Make a table; every cell becomes one line, an empty one a dash."""
    cells = tuple(tuple(one_line(cell) or "-" for cell in row) for row in rows)
    return Table(columns=tuple(columns), rows=cells, numbers=frozenset(numbers))


def facts(pairs: Iterable[tuple[str, str]]) -> Facts:
    """Make a list of names and values, leaving out the values that are empty."""
    return Facts(pairs=tuple((name, one_line(value)) for name, value in pairs if value))


def heading(words: str) -> Words:
    """Make the title of a part, apart from what stands above it."""
    return Words(text=f"\n{one_line(words)}", bold=True)


def sentence(words: str) -> Words:
    """Make a line of its own."""
    return Words(text=one_line(words))

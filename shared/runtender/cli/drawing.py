"""How the parts of a command's output look on a terminal, and as lines in a pipe: everything that needs rich."""

from __future__ import annotations

import os
from typing import TextIO, assert_never

from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from runtender.cli.parts import Facts, Part, Table, Words

# A pipe has no width; a row that wraps at 80 columns cannot be cut apart by the next program.
_PIPED_WIDTH = 10_000
# An API's message is still read with ease in a column of this width.
_LAST_COLUMN_WIDTH = 30


def render(part: Part, stream: TextIO) -> str:
    """Return a part as lines for `stream`, without the blanks that fill up each line."""
    console = console_for(stream)
    drawn = draw(part)
    if isinstance(drawn, Grid):
        console.width = max(console.width, _least_width(drawn, console))
    with console.capture() as captured:
        console.print(drawn)
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))


def draw(part: Part) -> RenderableType:
    """Return what rich prints for a part: no lines between rows and columns, no frame."""
    match part:
        case Table():
            return _table(part)
        case Facts():
            return _facts(part)
        case Words(text=text, bold=bold):
            return Text(text, style="bold" if bold else "")
        case str():
            return part
        case _:
            assert_never(part)


def console_for(stream: TextIO) -> Console:
    """Return a console that knows no markup: what is printed came from configs, logs and APIs."""
    interactive = stream.isatty()
    coloured = interactive and not os.environ.get("NO_COLOR")
    return Console(
        file=stream,
        force_terminal=interactive,
        color_system="auto" if coloured else None,
        width=None if interactive else _PIPED_WIDTH,
        markup=False,
        highlight=False,
        emoji=False,
    )


def _table(part: Table) -> Grid:
    made = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in part.columns:
        made.add_column(
            column,
            justify="right" if column in part.numbers else "left",
            no_wrap=column != part.columns[-1],
            overflow="fold",
        )
    for row in part.rows:
        made.add_row(*map(Text, row))
    return made


def _facts(part: Facts) -> Grid:
    made = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for pair in part.pairs:
        made.add_row(*map(Text, pair))
    return made


def _least_width(made: Grid, console: Console) -> int:
    """Return the width below which cells would be cut apart: then the terminal had better wrap whole lines."""
    last = made.columns[-1]
    last.max_width = _LAST_COLUMN_WIDTH
    least = console.measure(made, options=console.options.update(width=_PIPED_WIDTH)).maximum
    last.max_width = None
    return least

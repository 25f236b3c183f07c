"""What a command prints: data on standard output in one of three formats, all the rest on standard error.

The JSON and the YAML of a verb are the same document; a table is a view of it for people. Nothing depends on colour:
there is none when the output is piped or NO_COLOR is set, and no control character either.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Concatenate, ParamSpec, TextIO, TypeVar

import click
import yaml
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from runtender.cli.text import one_line

P = ParamSpec("P")
R = TypeVar("R")

# A pipe has no width; a row that wraps at 80 columns cannot be cut apart by the next program.
_PIPED_WIDTH = 10_000
# An API's message is still read with ease in a column of this width.
_LAST_COLUMN_WIDTH = 30


class Format(StrEnum):
    """How data is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def with_format(command: Callable[Concatenate[Format, P], R]) -> Callable[P, R]:
    """Give a command the option --format, and its value as the first argument."""

    @click.option(
        "--format",
        "format_name",
        type=click.Choice([each.value for each in Format]),
        default=Format.TABLE.value,
        show_default=True,
        help="How data is printed on standard output.",
    )
    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        chosen = Format(str(kwargs.pop("format_name")))
        return command(chosen, *args, **kwargs)

    return run


def emit(chosen: Format, document: Any, view: Callable[[], Iterable[RenderableType]]) -> None:
    """Print `document` on standard output; as a table, what `view` makes of it (text as it is)."""
    if chosen is Format.TABLE:
        for part in view():
            click.echo(part if isinstance(part, str) else render(part, sys.stdout))
    else:
        click.echo(_DUMPS[chosen](plain_values(document)))


def note(message: str) -> None:
    """Say something that is not data, on standard error; an empty message says nothing."""
    if message:
        click.echo(one_line(message), err=True)


def render(part: RenderableType, stream: TextIO) -> str:
    """Return a table or text as lines for `stream`, without the blanks that fill up each line."""
    console = console_for(stream)
    if isinstance(part, Table):
        console.width = max(console.width, _least_width(part, console))
    with console.capture() as captured:
        console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))


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


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[str] = ()) -> Table:
    """Make a table without lines. Columns in `numbers` are aligned to the right; only the last one wraps."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    right = frozenset(numbers)
    for column in columns:
        made.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=column != columns[-1],
            overflow="fold",
        )
    for row in rows:
        made.add_row(*(Text(one_line(cell) or "-") for cell in row))
    return made


def facts(pairs: Iterable[tuple[str, str]]) -> Table:
    """Make a two-column list of names and values, leaving out the values that are empty."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            made.add_row(Text(name), Text(one_line(value)))
    return made


def heading(words: str) -> Text:
    """Make the title of a part, apart from what stands above it."""
    return Text(f"\n{one_line(words)}", style="bold")


def plain_values(value: Any) -> Any:
    """Return a document as JSON types: moments as RFC 3339 in UTC, maps and lists as they are."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    # YAML's safe writer takes a string enum for an unknown object.
    return str(value) if isinstance(value, str) else value


def _least_width(made: Table, console: Console) -> int:
    """Return the width below which cells would be cut apart: then the terminal had better wrap whole lines."""
    last = made.columns[-1]
    last.max_width = _LAST_COLUMN_WIDTH
    least = console.measure(made, options=console.options.update(width=_PIPED_WIDTH)).maximum
    last.max_width = None
    return least


def _json(document: Any) -> str:
    # DEL is the one control character that JSON leaves alone.
    return json.dumps(document, indent=2).replace("\x7f", "\\u007f")


def _yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=110).rstrip("\n")


_DUMPS: Mapping[Format, Callable[[Any], str]] = {Format.JSON: _json, Format.YAML: _yaml}

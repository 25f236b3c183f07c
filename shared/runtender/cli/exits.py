"""How a command ends: one exit code per kind of end, and errors in words that say what to do.

Scripts branch on these codes, so they are part of the interface; a test holds the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import IO, Any

import click

from runtender.cli.text import one_line
from runtender.errors import Fault, Rejected


class Exit(IntEnum):
    """The exit codes. INTERRUPTED is the shell's own for Ctrl-C."""

    OK = 0
    ERROR = 1
    USAGE = 2
    RUN_FAILED = 3
    TIMED_OUT = 4
    NO_CAPACITY = 5
    CANCELLED = 6
    INTERRUPTED = 130


class Failure(click.ClickException):
    """The command could not do its work; the message says what happened and what to do."""

    exit_code = Exit.ERROR

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on standard error, each line of it free of control characters."""
        for line in self.message.splitlines():
            click.echo(f"error: {one_line(line)}", file=file, err=True)


class InputFailure(Failure):
    """What the caller gave must be mended first."""

    exit_code = Exit.USAGE

    @classmethod
    def of(cls, faults: Iterable[Fault]) -> InputFailure:
        """Make a failure with a line per fault."""
        return cls("\n".join(one_line(str(fault)) for fault in faults))


@contextmanager
def input_faults() -> Iterator[None]:
    """Turn a `Rejected` that is raised within into an `InputFailure`."""
    try:
        yield
    except Rejected as rejected:
        raise InputFailure.of(rejected.faults) from rejected


@contextmanager
def interrupted(message: str) -> Iterator[None]:
    """Let Ctrl-C end the command, and only the command: say `message`, exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(one_line(message), err=True)
        click.get_current_context().exit(Exit.INTERRUPTED)

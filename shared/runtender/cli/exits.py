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
from runtender.model import Outcome


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


_EXIT_BY_OUTCOME = {
    Outcome.SUCCEEDED: Exit.OK,
    # Part of the results is missing: a script that goes on as if nothing had happened would be wrong.
    Outcome.PARTIAL: Exit.RUN_FAILED,
    Outcome.FAILED: Exit.RUN_FAILED,
    Outcome.TIMED_OUT: Exit.TIMED_OUT,
    Outcome.NO_CAPACITY: Exit.NO_CAPACITY,
    Outcome.CANCELLED: Exit.CANCELLED,
}


# A run that came to nothing by itself is worse than one that had no time, no machine or no wish to go on.
_WORST_FIRST = (Exit.RUN_FAILED, Exit.TIMED_OUT, Exit.NO_CAPACITY, Exit.CANCELLED)


def exit_for(outcome: Outcome) -> Exit:
    """Return the exit code of a command that waited for a run with this outcome."""
    return _EXIT_BY_OUTCOME[outcome]


def worst(exits: Iterable[Exit]) -> Exit:
    """Return the exit code that speaks for several runs."""
    found = frozenset(exits)
    return next((each for each in _WORST_FIRST if each in found), Exit.OK)


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

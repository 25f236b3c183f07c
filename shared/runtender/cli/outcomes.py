"""The exit codes of runs' outcomes."""

from __future__ import annotations

from collections.abc import Iterable

from runtender.cli.exits import Exit
from runtender.model import Outcome

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

"""Processes that leave nothing behind, by what Linux offers: adoption of orphans, and death with the parent.

A process that asks to adopt orphans becomes the parent of every descendant whose own parent has gone, also of those that
left its session; so it can find and end them all. Standard library only: this runs inside simulated machines, where the
start-up time of an interpreter counts.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAUSE_S = 0.005


def adopt_orphans() -> None:
    """Make this process the parent of descendants that lose theirs. Raises OSError where the kernel cannot."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Let this process be killed when the thread that started it ends; to be called between fork and exec."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants(ancestor: int) -> list[int]:
    """Return the processes below `ancestor`, those that have ended and wait to be noticed excepted."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _living_parent(entry)) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def end_descendants() -> None:
    """Kill all that is below this process, and what that starts meanwhile. Needs `adopt_orphans` to miss nothing."""
    while below := descendants(os.getpid()):
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reap()
        time.sleep(_PAUSE_S)
    reap()


def end_group(leader: int) -> None:
    """Kill a process group; one that is gone already is fine."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def reap() -> dict[int, int]:
    """Take note of all children that have ended; return their exit codes as a shell counts them."""
    ended: dict[int, int] = {}
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = exit_code(os.waitstatus_to_exitcode(found[1]))
    return ended


def exit_code(returned: int) -> int:
    """Turn Python's return code (-15) into the shell's exit code (143)."""
    return 128 - returned if returned < 0 else returned


def _living_parent(entry: Path) -> int | None:
    try:
        stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name stands in brackets and may hold anything; state and parent follow it.
    state, parent = stat.rpartition(")")[2].split()[:2]
    return None if state in {"Z", "X"} else int(parent)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

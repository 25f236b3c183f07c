"""The error tree: three answers an event handler can give, and nothing else.

`Rejected` is the caller's fault and never retried, `Retryable` is nobody's fault and is tried again by redelivery,
`Conflict` means that somebody else was faster. Anything else that is raised is a bug and surfaces as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class RuntenderError(Exception):
    """Base of every error that runtender raises on purpose."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing wrong with an input: where (a dotted field path), what, and what to do about it."""

    field: str
    problem: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.field}: {self.problem}" if self.field else self.problem
        return f"{text}; {self.remedy}" if self.remedy else text


class Rejected(RuntenderError):
    """The input cannot be served as it is; repeating it changes nothing. Carries every fault found, not the first."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))

    @classmethod
    def because(cls, field: str, problem: str, remedy: str = "") -> Rejected:
        """Make a rejection with one fault."""
        return cls([Fault(field=field, problem=problem, remedy=remedy)])


class Retryable(RuntenderError):
    """The same call may go through later; `after` is a hint in seconds (None: the transport's own back-off)."""

    def __init__(self, message: str, *, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class Conflict(RuntenderError):
    """A write's precondition did not hold: the document changed, exists already, or is gone."""

    def __init__(self, path: str) -> None:
        super().__init__(f"document {path!r} is not as the write expected it")
        self.path = path

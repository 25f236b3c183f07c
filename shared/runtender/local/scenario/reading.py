"""Reads what a person wrote: values of a known kind, and every fault by its path instead of the first."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from runtender.errors import Fault, Rejected

E = TypeVar("E", bound=StrEnum)
R = TypeVar("R")

Read = Callable[["Reader", str, object], Any]
"""Reads one value: takes the reader, the value's path and the value."""

Keys = Mapping[str, tuple[str, Read]]
"""What a mapping may hold: its keys, the attribute that each becomes, and how its value is read."""

_DURATION = re.compile(r"(-?)(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_MOST_ENTRIES = 1000
"""Far more than a hand-written list has; every call looks at all of them."""


class Reader:
    """Reads values and collects what is wrong with them."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def finish(self) -> None:
        """Raise `Rejected` with all faults, if there are any."""
        if self._faults:
            raise Rejected(self._faults)

    def fault(self, path: str, problem: str, remedy: str) -> None:
        """Note what is wrong with the value at `path`."""
        self._faults.append(Fault(field=path, problem=problem, remedy=remedy))

    def adopt(self, path: str, rejected: Rejected) -> None:
        """Note the faults that another check found, below `path`."""
        for fault in rejected.faults:
            self.fault(f"{path}.{fault.field}", fault.problem, fault.remedy)

    def fields(self, path: str, value: object, known: Collection[str]) -> Mapping[str, Any]:
        """Read a mapping whose keys are all known."""
        if not isinstance(value, Mapping):
            self.fault(path, f"{value!r} is not a mapping", f"write {', '.join(sorted(known))} below it")
            return {}
        for key in value:
            if key not in known:
                words = ", ".join(sorted(known))
                self.fault(f"{path}.{key}".lstrip("."), "is not known", f"use one of {words}")
        return {key: value[key] for key in value if key in known}

    def record(
        self, path: str, value: object, keys: Keys, required: Collection[str] = ()
    ) -> dict[str, Any] | None:
        """Read a mapping into attributes; None where one that is required is missing."""
        fields = self.fields(path, value, keys)
        missing = [key for key in required if key not in fields]
        for key in missing:
            self.fault(f"{path}.{key}", "is missing", "write it")
        read = {keys[key][0]: keys[key][1](self, f"{path}.{key}", item) for key, item in fields.items()}
        return None if missing else read

    def each(
        self, path: str, value: object, read: Callable[[Reader, str, object], R | None]
    ) -> tuple[R, ...]:
        """Read a list, entry by entry; those that could not be read are left out."""
        if not isinstance(value, list) or len(value) > _MOST_ENTRIES:
            self.fault(path, "is not a list", f"write at most {_MOST_ENTRIES} entries, each after a dash")
            return ()
        entries = (read(self, f"{path}[{index}]", item) for index, item in enumerate(value))
        return tuple(entry for entry in entries if entry is not None)

    def text(self, path: str, value: object) -> str:
        """Read text."""
        if isinstance(value, str):
            return value
        self.fault(path, f"{value!r} is not text", "put it in quotes")
        return ""

    def mapping(self, path: str, value: object) -> Mapping[str, Any]:
        """Read a mapping with keys of any name."""
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return value
        self.fault(path, f"{value!r} is not a mapping", "write names and values below it")
        return {}

    def texts(self, path: str, value: object) -> tuple[str, ...]:
        """Read a list of texts."""
        if isinstance(value, list):
            return tuple(self.text(f"{path}[{index}]", item) for index, item in enumerate(value))
        self.fault(path, f"{value!r} is not a list", "write e.g. [us-central1-b]")
        return ()

    def whole(self, path: str, value: object) -> int:
        """Read a whole number, 0 or more."""
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self.fault(path, f"{value!r} is not a whole number", "write 0, 1, 2 ...")
        return 0

    def truth(self, path: str, value: object) -> bool:
        """Read a truth value."""
        if isinstance(value, bool):
            return value
        self.fault(path, f"{value!r} is not a truth value", "write true or false")
        return False

    def duration(self, path: str, value: object) -> timedelta:
        """Read a duration, 0 or more."""
        span = self.signed_duration(path, value)
        if span < timedelta():
            self.fault(path, f"{value!r} is less than nothing", 'write e.g. "90s"')
        return span

    def signed_duration(self, path: str, value: object) -> timedelta:
        """Read a duration that may be negative."""
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if match:
            span = timedelta(**{_UNITS[match[3]]: int(match[2])})
            return -span if match[1] else span
        self.fault(path, f"{value!r} is not a duration", 'write e.g. "90s", "10m", "2h"')
        return timedelta()

    def durations(self, path: str, value: object) -> tuple[timedelta, ...]:
        """Read a list of durations."""
        return self.each(path, value, Reader.duration)


def word_of(kind: type[E]) -> Callable[[Reader, str, object], E]:
    """Return how a word of an enum is read."""

    def read(reader: Reader, path: str, value: object) -> E:
        if isinstance(value, str) and value in set(kind):
            return kind(value)
        reader.fault(path, f"{value!r} is not known", f"use one of {', '.join(kind)}")
        return next(iter(kind))

    return read


def one_of(words: Collection[str]) -> Callable[[Reader, str, object], str]:
    """Return how one of `words` is read."""

    def read(reader: Reader, path: str, value: object) -> str:
        if isinstance(value, str) and value in words:
            return value
        reader.fault(path, f"{value!r} is not known", f"use one of {', '.join(words)}")
        return ""

    return read

"""Preconditions on the generation of an object: what makes markers write-once and swaps safe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtender.local.objects.answers import invalid, not_modified, precondition_failed
from runtender.local.objects.versions import ObjectVersion


@dataclass(frozen=True, kw_only=True, slots=True)
class Preconditions:
    """The four preconditions a call may carry; generation 0 stands for "no live object"."""

    generation: int | None = None
    not_generation: int | None = None
    metageneration: int | None = None
    not_metageneration: int | None = None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Preconditions:
        """Read them off a call's query."""
        return cls(
            generation=_number(query, "ifGenerationMatch"),
            not_generation=_number(query, "ifGenerationNotMatch"),
            metageneration=_number(query, "ifMetagenerationMatch"),
            not_metageneration=_number(query, "ifMetagenerationNotMatch"),
        )

    def check_read(self, version: ObjectVersion) -> None:
        """Refuse a read with 412, or with 304 where the caller asked for any other version than this one."""
        if not self._matches(version):
            raise precondition_failed()
        if not self._differs(version):
            raise not_modified()

    def check_write(self, version: ObjectVersion | None) -> None:
        """Refuse a write or a delete with 412 unless all of them hold for the live version."""
        if not (self._matches(version) and self._differs(version)):
            raise precondition_failed()

    def _matches(self, version: ObjectVersion | None) -> bool:
        generation, metageneration = _numbers_of(version)
        return self.generation in {None, generation} and self.metageneration in {None, metageneration}

    def _differs(self, version: ObjectVersion | None) -> bool:
        generation, metageneration = _numbers_of(version)
        return self.not_generation != generation and self.not_metageneration != metageneration


def _numbers_of(version: ObjectVersion | None) -> tuple[int, int]:
    return (version.generation, version.metageneration) if version else (0, 0)


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise invalid(f"Invalid value for {name}: {text!r} is not a whole number.")
    return int(text)

"""How the embedded stores answer `find`: by Firestore's rules for equality, order and absence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from runtender.ports import Document, Snapshot

_Key = tuple[Any, ...]
_SAME = (0,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What `find` is asked, answered by Firestore's rules for equality and order."""

    where: Mapping[str, Any]
    order_by: str | None
    descending: bool
    limit: int

    def answer(self, documents: Iterable[Snapshot]) -> list[Snapshot]:
        """Return those of a collection's documents that fit, in the order asked for, else by path."""
        ranked = sorted(
            ((self._rank(document.data), document.path, document) for document in documents),
            key=lambda entry: entry[:2],
            reverse=self.descending,
        )
        fitting = (document for rank, _, document in ranked if rank and self._fits(document.data))
        return list(islice(fitting, self.limit))

    def _rank(self, data: Document) -> _Key:
        return _key_at(data, self.order_by) if self.order_by is not None else _SAME

    def _fits(self, data: Document) -> bool:
        return all(_key_at(data, field) == _key(wanted) for field, wanted in self.where.items())


def _key_at(data: Document, field: str) -> _Key:
    """Return the key of the value at a dotted field; empty where there is no such field."""
    value: Any = data
    for name in field.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return ()
        value = value[name]
    return _key(value)


def _key(value: Any) -> _Key:
    """Return what compares for values of unlike types as the values do in Firestore."""
    match value:
        case None:
            return (0,)
        case bool():
            return (1, value)
        case int() | float():
            return (2, value)
        case datetime():
            return (3, value)
        case str():
            return (4, value)
        case Mapping():
            return (6, *((name, _key(value[name])) for name in sorted(value)))
        case _:
            return (5, *map(_key, value))

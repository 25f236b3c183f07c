"""How the embedded stores answer `find`: by Firestore's rules for equality, order and absence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runtender.ports import Document, Snapshot

_Key = tuple[Any, ...]
_SAME = (0,)
_ABSENT = object()


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What `find` is asked, answered by Firestore's rules for equality and order.

    Only some fields of a document bear on the answer, which may therefore be found before any document is read whole.
    """

    where: Mapping[str, Any]
    order_by: str | None
    descending: bool
    limit: int

    @property
    def fields(self) -> tuple[str, ...]:
        """The dotted fields that bear on the answer."""
        asked = [*self.where, *([] if self.order_by is None else [self.order_by])]
        return tuple(dict.fromkeys(asked))

    def answer(self, documents: Iterable[Snapshot]) -> list[Snapshot]:
        """Return those of a collection's documents that fit, in the order asked for, else by path."""
        by_path = {document.path: document for document in documents}
        candidates = ((path, self._values(document.data)) for path, document in by_path.items())
        return [by_path[path] for path in self.choose(candidates)]

    def choose(self, candidates: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
        """Return the paths of the answer. A candidate is a path with the values of those `fields` that its document has."""
        fitting = ((self._rank(values), path) for path, values in candidates if self._fits(values))
        ranked = sorted((entry for entry in fitting if entry[0]), reverse=self.descending)
        return [path for _, path in ranked[: self.limit]]

    def _values(self, data: Document) -> dict[str, Any]:
        found = {field: _value_at(data, field) for field in self.fields}
        return {field: value for field, value in found.items() if value is not _ABSENT}

    def _rank(self, values: Mapping[str, Any]) -> _Key:
        if self.order_by is None:
            return _SAME
        return _key(values[self.order_by]) if self.order_by in values else ()

    def _fits(self, values: Mapping[str, Any]) -> bool:
        return all(
            field in values and _key(values[field]) == _key(wanted) for field, wanted in self.where.items()
        )


def _value_at(data: Document, field: str) -> Any:
    value: Any = data
    for name in field.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return _ABSENT
        value = value[name]
    return value


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

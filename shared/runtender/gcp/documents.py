"""What a Firestore document can hold.

The adapter checks every value here before it is sent, and the embedded store refuses the same, so that a run
which works on one machine is not refused in the cloud. Limits: https://firebase.google.com/docs/firestore/quotas.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

from runtender.errors import Rejected

MAX_BYTES = 1_048_576
_MAX_DEPTH = 20
_INT64 = 2**63
_NAME_BYTES = 16
_MAP_BYTES = 32
_FIXED_BYTES = {bool: 1, type(None): 1, int: 8, float: 8, datetime: 8}


def _refuse(*_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError("a stored value is never changed in place: build a new one and commit it")


class FrozenMap(dict[str, Any]):
    """A dict that refuses every change, so that one copy can be handed to all readers."""

    __slots__ = ()
    __delitem__ = __setitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


class FrozenList(list[Any]):
    """A list that refuses every change."""

    __slots__ = ()
    __delitem__ = __setitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse


def collection_of(path: str) -> str:
    """Return the collection of a document's path. Raises ValueError where the path names no document."""
    segments = path.split("/")
    if len(segments) % 2 or not all(segments):
        raise ValueError(f"{path!r} names no document: use collection/id or collection/id/sub/id")
    return path.rpartition("/")[0]


def checked(path: str, fields: Mapping[str, Any]) -> FrozenMap:
    """Return a frozen copy of a document's fields, with every datetime in UTC.

    Raises `Rejected` for data that Firestore does not take (a config or a marker can bring such);
    TypeError or ValueError for what only a bug can: a value neither JSON nor datetime, or a naive datetime.
    """
    return _checked_map(f"document {path!r}", fields, 0)


def check_size(path: str, data: FrozenMap) -> None:
    """Raise `Rejected` when a document is larger than 1 MiB as Firestore counts it."""
    size = sum(_text_bytes(segment) for segment in path.split("/")) + _NAME_BYTES + _size(data)
    if size > MAX_BYTES:
        raise Rejected.because(
            f"document {path!r}",
            f"has {size:,} bytes, more than the {MAX_BYTES:,} that a document may have",
            "put large content into a Cloud Storage object and refer to it",
        )


def _checked(where: str, value: Any, depth: int) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return _checked_text(where, value)
        case int():
            if not -_INT64 <= value < _INT64:
                raise Rejected.because(where, f"{value} does not fit into 64 bits", "write it as a string")
            return int(value)
        case float():
            if not math.isfinite(value):
                raise Rejected.because(where, f"{value} is no JSON number", "use null")
            return float(value)
        case datetime():
            return _checked_moment(where, value)
        case Mapping():
            return _checked_map(where, value, depth + 1)
        case list() | tuple():
            return _checked_list(where, value, depth + 1)
        case _:
            raise TypeError(f"{where}: a document cannot hold a {type(value).__name__}")


def _checked_text(where: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Rejected.because(where, "has half of a surrogate pair", "send valid Unicode") from None
    return str(text)


def _checked_moment(where: str, moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{where}: {moment} has no time zone")
    # A plain datetime, whatever subclass a client library made.
    return datetime.combine(moment.date(), moment.timetz()).astimezone(UTC)


def _checked_list(where: str, values: list[Any] | tuple[Any, ...], depth: int) -> FrozenList:
    _check_depth(where, depth)
    for index, value in enumerate(values):
        if isinstance(value, list | tuple):
            raise Rejected.because(f"{where}[{index}]", "is a list in a list", "wrap it in an object")
    return FrozenList(_checked(f"{where}[{index}]", value, depth) for index, value in enumerate(values))


def _checked_map(where: str, fields: Mapping[str, Any], depth: int) -> FrozenMap:
    _check_depth(where, depth)
    for name in fields:
        if not name or (name.startswith("__") and name.endswith("__")):
            raise Rejected.because(where, f"has the reserved field name {name!r}", "use another")
    return FrozenMap(
        (_checked_text(where, name), _checked(f"{where}.{name}", value, depth))
        for name, value in fields.items()
    )


def _check_depth(where: str, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise Rejected.because(where, f"is nested more than {_MAX_DEPTH} levels deep", "flatten it")


def _text_bytes(text: str) -> int:
    return (len(text) if text.isascii() else len(text.encode())) + 1


def _size(value: Any) -> int:
    if isinstance(value, str):
        return _text_bytes(value)
    if isinstance(value, dict):
        size = _MAP_BYTES
        for name, item in value.items():
            size += _text_bytes(name) + _size(item)
        return size
    if isinstance(value, list):
        return sum(map(_size, value))
    return _FIXED_BYTES[type(value)]

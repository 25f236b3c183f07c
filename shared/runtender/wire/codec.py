"""Dataclass <-> document, by the dataclass's own field types, so that a noun and its stored form cannot drift apart.

Rules: enums are their values, durations are seconds under `<name>_s`, tuples are lists, nested dataclasses are maps,
moments stay aware datetimes. A key that is missing takes the field's default; an unknown key is left alone.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
Build = Callable[[Any], Any]

# Names that the stored form has and Python's grammar or reading forbids.
_STORED_NAME = {"try_number": "try", "passes": "pass"}
# Nearly all values of a document are of these types: to ask for them first makes encoding three times as fast.
_STORED_AS_THEY_ARE = frozenset({str, int, float, bool, types.NoneType, datetime})


def encode(value: Any) -> Any:
    """Turn a model value into document values (JSON types and datetimes)."""
    kind: Any = type(value)
    return value if kind in _STORED_AS_THEY_ARE else _encoder(kind)(value)


def encode_changes(value: Any, before: Any) -> dict[str, Any]:
    """Encode those fields of a dataclass that are not the very same objects as in `before`, another of its kind."""
    kind: Any = type(value)
    return {
        key: encode(getattr(value, name))
        for name, key, _ in _fields(kind)
        if getattr(value, name) is not getattr(before, name)
    }


def decode(kind: type[T], data: Mapping[str, Any]) -> T:
    """Turn a document map into a dataclass of `kind`; raises KeyError or ValueError when it is not one."""
    noun: Any = kind
    arguments = {
        name: data[key] if build is None else build(data[key])
        for name, key, build in _fields(noun)
        if key in data
    }
    return kind(**arguments)


@cache
def _encoder(kind: Any) -> Callable[[Any], Any]:
    is_noun = dataclasses.is_dataclass(kind)
    if is_noun:
        keys = [(name, key) for name, key, _ in _fields(kind)]
        return lambda value: {key: encode(getattr(value, name)) for name, key in keys}
    return next((store for stored, store in _ENCODERS if issubclass(kind, stored)), lambda value: value)


@cache
def _fields(kind: Any) -> tuple[tuple[str, str, Build | None], ...]:
    hints = typing.get_type_hints(kind)
    return tuple(
        (field.name, _stored_name(field.name, hints[field.name]), _builder(hints[field.name]))
        for field in dataclasses.fields(kind)
    )


def _stored_name(name: str, hint: Any) -> str:
    name = _STORED_NAME.get(name, name)
    return f"{name}_s" if timedelta in _members(hint) else name


def _members(hint: Any) -> tuple[Any, ...]:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return typing.get_args(hint)
    return (hint,)


@cache
def _builder(hint: Any) -> Build | None:
    """Return what turns a stored value into one of `hint`; None where it is stored as it is, as most values are."""
    members = _members(hint)
    if types.NoneType in members:
        (inner,) = (member for member in members if member is not types.NoneType)
        build = _builder(inner)
        return build and (lambda value: None if value is None else build(value))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        build_item = _builder(arguments[0])
        return tuple if build_item is None else lambda value: tuple([build_item(item) for item in value])
    if origin is not None and issubclass(origin, Mapping):
        build_value = _builder(arguments[1])
        if build_value is None:
            return lambda value: dict(value.items())
        return lambda value: {key: build_value(item) for key, item in value.items()}
    return _BUILDERS.get(hint) or _plain_builder(hint)


def _plain_builder(hint: Any) -> Build | None:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        noun: type[Any] = hint
        return lambda value: decode(noun, value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    return None


def _moment(value: Any) -> datetime:
    if type(value) is datetime and value.tzinfo is UTC:
        return value
    # Firestore answers with a datetime subclass that carries nanoseconds; a plain one keeps equality simple.
    return datetime(
        value.year,
        value.month,
        value.day,
        value.hour,
        value.minute,
        value.second,
        value.microsecond,
        tzinfo=UTC,
    )


_BUILDERS: Mapping[Any, Build] = {
    datetime: _moment,
    timedelta: lambda value: timedelta(seconds=value),
    float: float,
}

# A kind is stored as the first of these that it is a kind of.
_ENCODERS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (Enum, lambda value: value.value),
    (timedelta, timedelta.total_seconds),
    (Mapping, lambda value: {str(key): encode(item) for key, item in value.items()}),
    ((tuple, list), lambda value: [encode(item) for item in value]),
)

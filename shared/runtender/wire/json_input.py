"""JSON from outside, read so that nothing in it can trip whoever handles it later.

`json.loads` takes more than a document store, a hash or a log can: lone surrogates, NaN, numbers of any size, nesting
that ends the interpreter; and of a key given twice it silently takes one. All of it is refused here, once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# Deeper than any config, far below what recursion over it could hurt.
_DEEPEST = 64
# Beyond it a number is no longer the same in every language that reads our documents.
_LARGEST = 2**53
_MOST_SHOWN = 100


def read_json_object(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object in `body`; ValueError says what is wrong with it."""
    data = load_json(body)
    if not isinstance(data, dict):
        raise ValueError(f"it is a {_JSON_NAMES.get(type(data), 'value')}, not an object")
    _check_values(data)
    return data


def load_json(text: bytes | str) -> Any:
    """Return the JSON value that `text` says, whatever it is; ValueError where it says none, or not one alone."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_doubles)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _check_values(data: Any) -> None:
    layer = [data]
    for _ in range(_DEEPEST):
        layer = [item for value in layer for item in _checked_items(value)]
        if not layer:
            return
    raise ValueError(f"it is nested deeper than {_DEEPEST} levels")


def _checked_items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        # A lone surrogate is a ValueError here (UnicodeEncodeError) rather than a crash in a store or a hash.
        value.encode()
    elif isinstance(value, int | float) and not abs(value) <= _LARGEST:
        raise ValueError("a number in it is out of range")
    return []


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise ValueError(f"{key[:_MOST_SHOWN]!r} is given twice")
        data[key] = value
    return data


_JSON_NAMES = {
    list: "list",
    str: "string",
    int: "number",
    float: "number",
    bool: "truth value",
    type(None): "null",
}

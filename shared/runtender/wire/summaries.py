"""A worker's summary: bytes of a stored object -> a validated `Summary`.

The worker is the user's code. Its counts are checked, and of the rest only what a document can hold is kept: a summary
must never be able to keep its own job from being saved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runtender.model import Summary
from runtender.wire.json_input import read_json_object

MAX_SUMMARY_BYTES = 64 * 1024
_MOST_CELLS = 2**53
_COUNTS = ("n_cells", "n_ok", "n_error")
_DEEPEST = 6
_ERRORS_TOLD = 3
_LONGEST_ERROR = 200
_RESERVED_NAME = re.compile(r"__.*__")
_LONGEST_NAME = 200


def parse_summary(body: bytes, nonce: str) -> Summary | None:
    """Read a summary; None when it is not one of this nonce."""
    if not 0 < len(body) <= MAX_SUMMARY_BYTES:
        return None
    try:
        data = read_json_object(body)
    except ValueError:
        return None
    counts = {key: count for key in _COUNTS if (count := _count(data.get(key))) is not None}
    if data.get("nonce") != nonce or len(counts) < len(_COUNTS):
        return None
    detail = {**_storable(data, _DEEPEST), **_first_errors(data.get("errors"))}
    return Summary(**counts, complete=data.get("complete") is True, detail=detail)


def _first_errors(errors: Any) -> dict[str, str]:
    """Return the first few cell errors as one text: a list of maps is no field of a document that people read."""
    told = [
        ": ".join(str(value)[:_LONGEST_ERROR] for value in error.values())
        for error in (errors if isinstance(errors, list) else [])[:_ERRORS_TOLD]
        if isinstance(error, dict)
    ]
    return {"first_errors": "; ".join(told)} if told else {}


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST_CELLS:
        return None
    return value


def _storable(data: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Return the fields that are plain values, or maps of them; lists and names no document takes are left out."""
    kept: dict[str, Any] = {}
    for name, value in data.items():
        if not name or len(name) > _LONGEST_NAME or _RESERVED_NAME.fullmatch(name):
            continue
        if isinstance(value, dict):
            if depth > 0:
                kept[name] = _storable(value, depth - 1)
        elif not isinstance(value, list):
            kept[name] = value
    return kept

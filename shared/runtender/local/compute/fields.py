"""Partial answers: what the `fields` parameter selects, and nothing else.

A reader that asks for too little must miss here what it would miss in the cloud.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from runtender.local.compute.errors import invalid_value

Mask = dict[str, Any]
"""Field names with what is selected below each; an empty mask selects everything."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]+|\S")
_NAME = re.compile(r"[A-Za-z0-9_-]+|\*")


# A client asks in the same words again and again.
@lru_cache(maxsize=64)
def parse_fields(text: str) -> Mask:
    """Read a mask such as `nextPageToken,items/*/instances(id,labels)`; raises `ApiError` (400) for anything else."""
    tokens = [*_TOKEN.findall(text), ""]
    mask: Mask = {}
    try:
        _read_list(tokens, mask)
        _expect(tokens, "")
    except _Unreadable as error:
        raise invalid_value("fields", text, "Invalid field selection.") from error
    return mask


def select(mask: Mask, document: Any) -> Any:
    """Return what the mask selects of a document."""
    if not mask:
        return document
    if isinstance(document, list):
        return [select(mask, item) for item in document]
    if not isinstance(document, dict):
        return document
    every, selected = mask.get("*"), {}
    for key, value in document.items():
        below = mask.get(key, every)
        if below is not None:
            selected[key] = select(below, value)
    return selected


class _Unreadable(Exception):
    """The tokens are no mask."""


def _read_list(tokens: list[str], mask: Mask) -> None:
    """Read `path,path...` into the mask."""
    _read_path(tokens, mask)
    while tokens[0] == ",":
        tokens.pop(0)
        _read_path(tokens, mask)


def _read_path(tokens: list[str], mask: Mask) -> None:
    """Read `name/name...`, and what stands in brackets after it, into the mask."""
    below = mask.setdefault(_read_name(tokens), {})
    while tokens[0] == "/":
        tokens.pop(0)
        below = below.setdefault(_read_name(tokens), {})
    if tokens[0] == "(":
        tokens.pop(0)
        _read_list(tokens, below)
        _expect(tokens, ")")


def _read_name(tokens: list[str]) -> str:
    if not _NAME.fullmatch(tokens[0]):
        raise _Unreadable
    return tokens.pop(0)


def _expect(tokens: list[str], token: str) -> None:
    if tokens.pop(0) != token:
        raise _Unreadable

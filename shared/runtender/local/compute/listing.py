"""Lists as the API gives them: filter expressions, order, pages."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from runtender.local.compute.errors import ApiError, invalid_value
from runtender.local.compute.operations import API
from runtender.local.compute.routes import BASE, Call

Document = Mapping[str, Any]
Test = Callable[[Document], bool]

_PAGE = 500
"""Both the default and the most that one page holds."""

_WORD = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_.-]*)")
_OPERATOR = re.compile(r"\s*(:\*|!=|=|eq\b|ne\b)")
_QUOTED = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\')')
_BARE = re.compile(r"\s*([^\s()]+)")
_AND, _OR, _NOT = (re.compile(rf"\s*{word}(?![A-Za-z0-9_.-])") for word in ("AND", "OR", "NOT"))
_OPENS, _CLOSES, _ENDS = re.compile(r"\s*\("), re.compile(r"\s*\)"), re.compile(r"\s*(\)|$)")


# A client asks in the same words again and again.
@lru_cache(maxsize=64)
def parse_filter(text: str) -> Test:
    """Compile a filter expression: `field op value` with =, !=, :*, eq, ne; AND, OR, NOT, parentheses.

    Raises `ApiError` (400) for anything else, also for operators that only the real service knows.
    """
    scanner = _Scanner(text)
    test = _conjunction(scanner)
    if scanner.sees(_CLOSES):
        raise scanner.error()
    return test


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One page of a list. `token` asks for the next one."""

    items: tuple[Document, ...]
    token: str | None


def page_of(documents: Sequence[Document], query: Mapping[str, str], key: Callable[[Document], str]) -> Page:
    """Filter `documents`, put them in order and cut one page out. `key` is unique and is the default order.

    A page goes on after the last item of the one before, whatever came or went meanwhile.
    """
    newest_first = _newest_first(query.get("orderBy", ""))
    if text := query.get("filter", ""):
        test = parse_filter(text)
        documents = [document for document in documents if test(document)]

    def place(document: Document) -> list[str]:
        return [str(document.get("insertTime", "")), key(document)] if newest_first else [key(document)]

    ordered = sorted(documents, key=place, reverse=newest_first)
    if token := query.get("pageToken", ""):
        last = _read_token(token)
        ordered = [d for d in ordered if (place(d) < last if newest_first else place(d) > last)]
    size = _page_size(query.get("maxResults", ""))
    items = ordered[:size]
    more = len(ordered) > len(items)
    return Page(items=tuple(items), token=_write_token(place(items[-1])) if more and items else None)


def list_document(kind: str, call: Call, page: Page) -> dict[str, Any]:
    """Return a page in the shape that all lists share."""
    path = call.request.path.strip("/").removeprefix(f"{BASE}/")
    document: dict[str, Any] = {"kind": kind, "id": path, "selfLink": f"{API}/{path}"}
    if page.items:
        # An empty list has no items at all, which careless readers trip over.
        document["items"] = list(page.items)
    if page.token:
        document["nextPageToken"] = page.token
    return document


def name_of(document: Document) -> str:
    """Return a resource's name, unique within its zone."""
    return str(document["name"])


def scoped_name_of(document: Document) -> str:
    """Return a resource's zone and name, unique within the project."""
    return f"{document['zone']}/{document['name']}"


def _page_size(text: str) -> int:
    if not text:
        return _PAGE
    if not text.isascii() or not text.isdigit() or int(text) > _PAGE:
        raise invalid_value("maxResults", text, f"Value must be in the range [0, {_PAGE}].")
    # 0 is documented as legal and means the default.
    return int(text) or _PAGE


def _newest_first(order: str) -> bool:
    if order not in {"", "name", "creationTimestamp desc"}:
        raise invalid_value("orderBy", order, "Sorting by it is not supported.")
    return order == "creationTimestamp desc"


def _write_token(place: Sequence[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _read_token(token: str) -> list[str]:
    try:
        place = json.loads(base64.urlsafe_b64decode(token.encode()))
    except (binascii.Error, ValueError) as error:
        raise invalid_value("pageToken", token, "Invalid page token.") from error
    return [str(part) for part in place]


class _Scanner:
    """Reads one filter expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def take(self, pattern: re.Pattern[str]) -> str | None:
        """Read what `pattern` finds here and return its group; None where it finds nothing."""
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return next((group for group in match.groups() if group is not None), "")

    def sees(self, pattern: re.Pattern[str]) -> bool:
        return pattern.match(self._text, self._at) is not None

    def error(self) -> ApiError:
        return invalid_value("filter", self._text, "Invalid list filter expression.")


def _conjunction(scanner: _Scanner) -> Test:
    tests = [_alternatives(scanner)]
    while not scanner.sees(_ENDS):
        # Terms side by side mean the same as with AND between them.
        scanner.take(_AND)
        tests.append(_alternatives(scanner))
    return lambda document: all(test(document) for test in tests)


def _alternatives(scanner: _Scanner) -> Test:
    # OR binds tighter than AND in Google's filter language (AIP-160).
    tests = [_term(scanner)]
    while scanner.take(_OR) is not None:
        tests.append(_term(scanner))
    return lambda document: any(test(document) for test in tests)


def _term(scanner: _Scanner) -> Test:
    if scanner.take(_NOT) is not None:
        inner = _term(scanner)
        return lambda document: not inner(document)
    if scanner.take(_OPENS) is not None:
        test = _conjunction(scanner)
        if scanner.take(_CLOSES) is None:
            raise scanner.error()
        return test
    field, operator = scanner.take(_WORD), scanner.take(_OPERATOR)
    if not field or not operator:
        raise scanner.error()
    if operator == ":*":
        return lambda document: _value(document, field) is not None
    value = scanner.take(_QUOTED)
    value = scanner.take(_BARE) if value is None else re.sub(r"\\(.)", r"\1", value)
    if value is None:
        raise scanner.error()
    return _comparison(field, operator, value, scanner)


def _comparison(field: str, operator: str, value: str, scanner: _Scanner) -> Test:
    if operator in {"=", "!="}:
        return lambda document: (_value(document, field) == value) == (operator == "=")
    try:
        pattern = re.compile(value)
    except re.error as error:
        raise scanner.error() from error
    return lambda document: bool(pattern.fullmatch(_value(document, field) or "")) == (operator == "eq")


def _value(document: Document, field: str) -> str | None:
    value: Any = document
    for part in field.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)

"""Listing objects by prefix, with folders and pages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtender.local.objects.answers import invalid
from runtender.local.objects.versions import ObjectVersion

_MOST_RESULTS = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """One line of a listing: an object, or a folder that stands for all objects below it."""

    name: str
    version: ObjectVersion | None


def list_page(live: Mapping[str, ObjectVersion], query: Mapping[str, str], address: str) -> dict[str, Any]:
    """Return the page of the objects in `live` that `query` asks for, as `objects.list` answers it."""
    limit = _page_size(query.get("maxResults"))
    after = _name_of_token(query.get("pageToken"))
    entries = [entry for entry in _entries(live, query) if entry.name > after]
    page = entries[:limit]
    answer: dict[str, Any] = {"kind": "storage#objects"}
    if items := [entry.version.resource(address) for entry in page if entry.version is not None]:
        answer["items"] = items
    if prefixes := [entry.name for entry in page if entry.version is None]:
        answer["prefixes"] = prefixes
    if len(entries) > limit:
        answer["nextPageToken"] = base64.urlsafe_b64encode(page[-1].name.encode()).decode()
    return answer


def _entries(live: Mapping[str, ObjectVersion], query: Mapping[str, str]) -> list[_Entry]:
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    first, end = query.get("startOffset", ""), query.get("endOffset", "")
    names = (
        name for name in sorted(live) if name.startswith(prefix) and name >= first and (not end or name < end)
    )
    entries: dict[str, _Entry] = {}
    for name in names:
        folder, cut, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
        if cut:
            entries.setdefault(prefix + folder + cut, _Entry(name=prefix + folder + cut, version=None))
        else:
            entries[name] = _Entry(name=name, version=live[name])
    return sorted(entries.values(), key=lambda entry: entry.name)


def _page_size(text: str | None) -> int:
    if text is None:
        return _MOST_RESULTS
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise invalid(f"Invalid value for maxResults: {text!r}.")
    return min(int(text), _MOST_RESULTS)


def _name_of_token(token: str | None) -> str:
    if not token:
        return ""
    try:
        return base64.urlsafe_b64decode(token).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise invalid(f"Invalid pageToken: {token!r}.") from error

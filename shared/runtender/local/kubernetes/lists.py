"""Lists in pages: what a list showed when it began, kept for a while so that it can be continued unchanged."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.documents import Document
from runtender.local.kubernetes.errors import bad_request, expired
from runtender.local.kubernetes.resources import Resource
from runtender.local.kubernetes.selectors import selection_of

_GONE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)


class Lists:
    """Answers lists, and remembers the rest of those that were cut."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rests: dict[str, tuple[datetime, str, list[Document]]] = {}
        self._begun = 0

    def page(self, resource: Resource, namespace: str, query: Mapping[str, str]) -> Document:
        """Return a page of a list; raises `StatusError` 400 or 410."""
        limit = _limit(query)
        token = query.get("continue", "")
        if token:
            version, documents = self._resume(token)
        else:
            selection = selection_of(resource.plural, query)
            found = self._cluster.store.each(resource.plural, namespace)
            documents = [document for document in found if selection.takes(document)]
            version = str(self._cluster.store.version)
        shown = documents if limit is None else documents[:limit]
        metadata: dict[str, Any] = {"resourceVersion": version}
        rest = documents[len(shown) :]
        if rest:
            metadata["continue"] = self._keep(version, rest)
            if not (query.get("labelSelector") or query.get("fieldSelector")):
                metadata["remainingItemCount"] = len(rest)
        return {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": metadata,
            "items": [_item(document) for document in shown],
        }

    def _keep(self, version: str, rest: list[Document]) -> str:
        now = self._cluster.now
        self._rests = {token: kept for token, kept in self._rests.items() if kept[0] > now}
        self._begun += 1
        token = base64.urlsafe_b64encode(f"{version}/{self._begun}".encode()).decode().rstrip("=")
        self._rests[token] = (now + self._cluster.timings.list_memory, version, rest)
        return token

    def _resume(self, token: str) -> tuple[str, list[Document]]:
        kept = self._rests.get(token)
        if kept is None or kept[0] <= self._cluster.now:
            raise expired(_GONE)
        return kept[1], kept[2]


def _limit(query: Mapping[str, str]) -> int | None:
    text = query.get("limit", "")
    if text and not text.isdigit():
        raise bad_request(f'unable to decode query: strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text or 0) or None


def _item(document: Document) -> Document:
    """Entries of a list do not say what they are: the list does."""
    return {name: value for name, value in document.items() if name not in {"kind", "apiVersion"}}

"""Watches: the changes of some objects as they come, for as long as somebody listens."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.documents import Document
from runtender.local.kubernetes.errors import StatusError, bad_request
from runtender.local.kubernetes.queries import flag
from runtender.local.kubernetes.resources import Resource
from runtender.local.kubernetes.routes import Call
from runtender.local.kubernetes.selectors import Selection, selection_of
from runtender.local.kubernetes.store import Change, ChangeType

Present = Callable[[Document], Mapping[str, Any]]
"""How a client wants to see an object."""

_LONGEST = timedelta(minutes=30)
_ALL_SENT = {"k8s.io/initial-events-end": "true"}


@dataclass(kw_only=True, slots=True)
class Watch:
    """One client's watch, a `Stream` of lines of JSON. It begins with all there is, or after a version."""

    cluster: Cluster
    resource: Resource
    namespace: str
    selection: Selection
    present: Present
    ends_at: datetime
    bookmarks: bool
    version: int | None
    begins_with_all: bool
    over: bool = False
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})

    @classmethod
    def open(cls, call: Call, cluster: Cluster, present: Present) -> Watch:
        """Begin a watch; raises `StatusError` 400 for one that cannot be understood."""
        try:
            span = timedelta(seconds=int(call.query.get("timeoutSeconds") or _LONGEST.total_seconds()))
            version = int(call.query.get("resourceVersion") or 0)
        except ValueError as error:
            raise bad_request(f"invalid watch: {error}") from error
        return cls(
            cluster=cluster,
            resource=call.resource,
            namespace=call.namespace,
            selection=selection_of(call.resource.plural, call.query),
            present=present,
            ends_at=cluster.now + span,
            bookmarks=flag(call.query, "allowWatchBookmarks"),
            version=version or None,
            begins_with_all=flag(call.query, "sendInitialEvents"),
        )

    def poll(self) -> bytes:
        """Return what has happened since the last look."""
        lines: list[bytes] = []
        if self.version is None or self.begins_with_all:
            lines += self._all()
        else:
            try:
                for change in self.cluster.store.changes_since(self.version):
                    lines += self._seen(change)
            except StatusError as error:
                self.over = True
                return _line("ERROR", error.response.json())
        self.version = self.cluster.store.version
        if self.cluster.now >= self.ends_at:
            self.over = True
            if self.bookmarks:
                lines.append(self._bookmark({}))
        return b"".join(lines)

    def _all(self) -> list[bytes]:
        documents = self.cluster.store.each(self.resource.plural, self.namespace)
        lines = [_line("ADDED", self.present(one)) for one in documents if self.selection.takes(one)]
        if self.begins_with_all:
            self.begins_with_all, self.version = False, self.cluster.store.version
            lines.append(self._bookmark(_ALL_SENT))
        return lines

    def _seen(self, change: Change) -> list[bytes]:
        """Tell a change as it looks through the selectors: what leaves their view is gone, what enters is new."""
        if change.key.resource != self.resource.plural or self.namespace not in {"", change.key.namespace}:
            return []
        before = change.before is not None and self.selection.takes(change.before)
        after = change.type is not ChangeType.DELETED and self.selection.takes(change.document)
        if not before and not after:
            return []
        kind = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
        return [_line(kind, self.present(change.document))]

    def _bookmark(self, annotations: Mapping[str, str]) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(self.version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = dict(annotations)
        mark = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": metadata}
        return _line("BOOKMARK", mark)


def _line(kind: str, document: Mapping[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": document}).encode() + b"\n"

"""Answers that go on: a watch, or a log that is followed. Whoever serves one asks it again and again for what is new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from runtender.local.kubernetes.documents import Key
from runtender.local.kubernetes.logs import LogRequest
from runtender.local.kubernetes.parts import Parts
from runtender.local.kubernetes.pods import is_over


class Stream(Protocol):
    """An answer that goes on until it is `over`, or until nobody listens."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's headers."""

    @property
    def over(self) -> bool:
        """True when nothing more will come."""

    def poll(self) -> bytes:
        """Return what is new."""


class LogStream:
    """A container's log as it grows, until the container or its pod is gone."""

    def __init__(self, parts: Parts, key: Key, uid: str, wanted: LogRequest) -> None:
        logs, self._restart = parts.kubelet.logs, parts.kubelet.restart_of(uid)
        self._parts = parts
        self._key = key
        self._uid = uid
        self._sent = logs.written(uid, self._restart)
        self._first = logs.read(uid, self._restart, wanted)
        self.headers: Mapping[str, str] = {"Content-Type": "text/plain"}
        self.over = False

    def poll(self) -> bytes:
        """Return what was printed since the last look; at first what was asked for of the past."""
        logs = self._parts.kubelet.logs
        pod = self._parts.cluster.store.get(self._key)
        self.over = pod is None or is_over(pod) or self._parts.kubelet.restart_of(self._uid) != self._restart
        text = self._first + logs.since(self._uid, self._restart, self._sent)
        self._first, self._sent = b"", logs.written(self._uid, self._restart)
        return text

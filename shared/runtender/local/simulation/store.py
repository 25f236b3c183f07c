"""The document store in bad weather: commits that are lost, or go through and say otherwise, and reads without an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from runtender.errors import Conflict, Retryable
from runtender.local.simulation.weather import CommitFault, Weather
from runtender.ports import Increment, Snapshot, Store, Write


class WeatheredStore:
    """A store behind which another one does the work. `committed` hears the paths of every commit that went through."""

    def __init__(self, store: Store, weather: Weather, committed: Callable[[list[str]], None]) -> None:
        self._store = store
        self._weather = weather
        self._committed = committed

    def get(self, path: str) -> Snapshot | None:
        self._read()
        return self._store.get(path)

    def commit(self, writes: Sequence[Write]) -> tuple[Any, ...]:
        fault = self._weather.commit()
        if fault is CommitFault.LOST:
            raise Retryable("the store took nothing")
        stamps = self._store.commit(writes)
        self._committed([write.path for write in writes])
        if fault is CommitFault.UNTOLD:
            raise Retryable("the store did not answer")
        # What has no precondition cannot be refused for one.
        if fault is CommitFault.ECHOED and not all(isinstance(write, Increment) for write in writes):
            raise Conflict(writes[0].path)
        return stamps

    def due(self, now: datetime, limit: int) -> list[str]:
        self._read()
        return self._store.due(now, limit)

    def find(
        self,
        collection: str,
        *,
        where: Mapping[str, Any] | None = None,
        order_by: str | None = None,
        descending: bool = False,
        limit: int = 100,
    ) -> list[Snapshot]:
        self._read()
        return self._store.find(
            collection, where=where, order_by=order_by, descending=descending, limit=limit
        )

    def watch(self, path: str, seconds: float | None = None) -> Iterator[Snapshot | None]:
        return self._store.watch(path, seconds)

    def _read(self) -> None:
        if self._weather.read_fails():
            raise Retryable("the store does not answer")

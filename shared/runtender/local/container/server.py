"""The simulated GKE API on real time, served over plain HTTP. `url` is the address without the API's path (`/v1`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType

from runtender.local.container.clusters import GkeCluster
from runtender.local.container.core import ContainerCore
from runtender.local.http import on_clock, serve, utc_now


class ContainerServer(AbstractContextManager["ContainerServer"]):
    """A served core."""

    def __init__(self, core: ContainerCore, *, port: int = 0, now: Callable[[], datetime] = utc_now) -> None:
        self._core = core
        self._gate = threading.Lock()
        self._plain = serve(on_clock(core.handle, now, self._gate), port=port)
        self.url = self._plain.url
        self.port = self._plain.port

    def put(self, cluster: GkeCluster) -> None:
        """Let a cluster be there, in place of the one of its name and location."""
        with self._gate:
            self._core.put(cluster)

    def remove(self, location: str, name: str) -> None:
        """Let a cluster be gone."""
        with self._gate:
            self._core.remove(location, name)

    def silence(self, zones: Iterable[str]) -> None:
        """Let these locations, and no others, be missing from lists over the project."""
        with self._gate:
            self._core.silence(zones)

    def counts(self) -> dict[str, int]:
        """Return the calls so far by API method."""
        with self._gate:
            return self._core.counts()

    def close(self) -> None:
        """Stop answering."""
        self._plain.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

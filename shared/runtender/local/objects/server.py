"""The simulated Cloud Storage on loopback ports: plain for the official client, TLS for unedited scripts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType

from runtender.local.http import HttpRequest, HttpResponse, LocalAuthority, on_clock, serve, utc_now
from runtender.local.objects.core import ObjectsCore


class ObjectServer(AbstractContextManager["ObjectServer"]):
    """A served core. `url` is what STORAGE_EMULATOR_HOST takes; `tls_port` is null without an authority."""

    def __init__(
        self,
        core: ObjectsCore,
        *,
        port: int = 0,
        authority: LocalAuthority | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._core = core
        self._gate = threading.Lock()
        self._now = now
        handler = on_clock(core.handle, now, self._gate)
        self._plain = serve(handler, port=port)
        self._tls = serve(handler, tls=authority) if authority is not None else None
        self.url = self._plain.url
        self.port = self._plain.port
        self.tls_port = self._tls.port if self._tls is not None else None

    def apply(self, request: HttpRequest) -> HttpResponse:
        """Answer one request of this process: uncounted, and undisturbed by faults."""
        with self._gate:
            return self._core.apply(request, self._now())

    def counts(self) -> dict[str, int]:
        """Return the calls so far by API method."""
        with self._gate:
            return self._core.counts()

    def close(self) -> None:
        """Stop both servers. May be called twice."""
        self._plain.close()
        if self._tls is not None:
            self._tls.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

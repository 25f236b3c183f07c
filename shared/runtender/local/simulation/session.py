"""The adapters' HTTP session, straight to the cores: no socket, no wire, and a fraction of the time `requests` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import requests
from requests.structures import CaseInsensitiveDict

from runtender.local.http import CoreHandler, HttpRequest


@dataclass(frozen=True, slots=True)
class CoreAnswer:
    """A `gcp.session.HttpAnswer`."""

    status_code: int
    content: bytes
    headers: Mapping[str, str]


class CoreSession:
    """A `gcp.session.HttpSession`. `cores` are the services by host name."""

    def __init__(self, cores: Mapping[str, CoreHandler], now: Callable[[], datetime]) -> None:
        self._cores = cores
        self._now = now

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: tuple[float, float] | None = None,
    ) -> CoreAnswer:
        """Send one request; raises `requests.ConnectionError` where the core drops the connection."""
        del timeout  # A core answers at once, or not at all.
        host, _, path = url.partition("://")[2].partition("/")
        asked = HttpRequest(
            method=method, path=f"/{path}", query=params or {}, headers=headers or {}, body=data or b""
        )
        answer = self._cores[host](asked, self._now())
        if answer.status == 0:
            raise requests.ConnectionError("the connection broke before an answer came")
        return CoreAnswer(answer.status, answer.body, CaseInsensitiveDict(answer.headers))

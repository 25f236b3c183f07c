"""The in-process client: a `requests` session that talks to a core without a socket and without real time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse as RawResponse

from runtender.local.http.messages import CoreHandler, HttpRequest


class CoreAdapter(HTTPAdapter):
    """Answers a session's requests from a core: `session.mount("http://", CoreAdapter(core.handle, now))`."""

    def __init__(self, handler: CoreHandler, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._handler = handler
        self._now = now

    def send(self, request: requests.PreparedRequest, *_args: Any, **_options: Any) -> requests.Response:
        """Carry out `request`; raises `requests.ConnectionError` where the core drops the connection."""
        asked = HttpRequest.to_url(
            request.method or "GET",
            request.url or "",
            headers=dict(request.headers),
            body=_body_bytes(request.body),
        )
        answer = self._handler(asked, self._now())
        if answer.status == 0:
            raise requests.ConnectionError("the connection broke before an answer came", request=request)
        raw = RawResponse(
            body=BytesIO(b"" if request.method == "HEAD" else answer.body),
            headers=dict(answer.headers),
            status=answer.status,
            preload_content=False,
        )
        return self.build_response(request, raw)


def _body_bytes(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if hasattr(body, "read"):
        return _body_bytes(body.read())
    return body if isinstance(body, bytes) else b"".join(body)

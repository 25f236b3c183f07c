"""Requests and responses as the simulated services see them, whatever carried them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from requests.structures import CaseInsensitiveDict


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpRequest:
    """One request. `path` is as sent (percent-encoded, no query); the last value of a query key counts.

    `headers` may be given as any mapping and is read without regard to case.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", CaseInsensitiveDict(self.headers))

    @classmethod
    def to_url(cls, method: str, url: str, *, headers: Mapping[str, str], body: bytes) -> HttpRequest:
        """Take a URL, or the target of a request line, apart."""
        target = urlsplit(url)
        query = dict(parse_qsl(target.query, keep_blank_values=True))
        return cls(method=method, path=target.path, query=query, headers=headers, body=body)

    @property
    def segments(self) -> tuple[str, ...]:
        """The path's parts, each percent-decoded by itself: an encoded slash stays inside its part."""
        return tuple(map(unquote, self.path.strip("/").split("/")))

    def json(self) -> Any:
        """Parse the body; raises ValueError when it is not JSON. An empty body is an empty object."""
        return json.loads(self.body) if self.body else {}


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpResponse:
    """One response. Status 0 means that the connection breaks before any answer (`DROPPED`)."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> Any:
        """Parse the body; raises ValueError when it is not JSON."""
        return json.loads(self.body)


DROPPED = HttpResponse(status=0)

Handler = Callable[[HttpRequest], HttpResponse]
CoreHandler = Callable[[HttpRequest, datetime], HttpResponse]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What a call is answered instead of the proper answer. `applied`: it takes effect all the same."""

    answer: HttpResponse
    applied: bool = False


Faults = Callable[[str, HttpRequest], Fault | None]
"""Consulted once per call, with the API's method id (`storage.objects.insert`) and the request."""


def no_faults(_method_id: str, _request: HttpRequest) -> Fault | None:
    """Let every call through."""
    return None


def json_response(status: int, document: Any, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Return `document` as a JSON response."""
    return HttpResponse(
        status=status,
        headers={"Content-Type": "application/json; charset=UTF-8", **(headers or {})},
        body=json.dumps(document, ensure_ascii=False).encode(),
    )


def google_error(
    status: int,
    reason: str,
    message: str,
    *,
    word: str | None = None,
    details: Iterable[Mapping[str, Any]] = (),
    **where: str,
) -> HttpResponse:
    """Return an error in the body that Google's REST APIs document.

    `word` is the canonical status (`NOT_FOUND`) and `details` the structured details, for services that send
    them; `where` adds keys such as `locationType` and `location` to the one entry of `errors`.
    """
    error: dict[str, Any] = {
        "code": status,
        "message": message,
        "errors": [{"message": message, "domain": "global", "reason": reason, **where}],
    }
    if word is not None:
        error["status"] = word
    if listed := [dict(detail) for detail in details]:
        error["details"] = listed
    return json_response(status, {"error": error})

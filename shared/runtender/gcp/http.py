"""One HTTP call: bounded in time, repeated only where the caller says that it is safe, answered in plain values."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import requests

from runtender.gcp.session import HttpSession
from runtender.ports import Clock

NO_ANSWER = 0
PASSING = frozenset({NO_ANSWER, 408, 500, 502, 503, 504})
"""Statuses that a repeat of the same call may turn into an answer."""

# With back-off this fits the time-out of 30 s; what is not back by then is better tried by the next event.
_MAX_TRIES = 4
_FIRST_PAUSE_S = 0.5
# Short, because a name has several addresses and each gets this long: a create must leave well before the hold on
# its row ends.
_CONNECT_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What came back. `status` is NO_ANSWER where nothing did; `problem` says why then."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    def json(self) -> Mapping[str, Any]:
        """Return the body as a JSON object; empty where it is none."""
        try:
            body = json.loads(self.content)
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    def text(self, limit: int) -> str:
        """Return what came back, or why nothing did, in at most `limit` characters."""
        return self.problem[:limit] or self.content[:limit].decode(errors="replace")

    def retry_after_s(self, now: datetime) -> float | None:
        """Return the seconds that the server asks to wait, given either way the header may be written."""
        value = self.headers.get("Retry-After", "").strip()
        if not value:
            return None
        if value.isascii() and value.isdigit():
            return float(value)
        try:
            until = parsedate_to_datetime(value)
        except ValueError:
            return None
        # A date in the header is GMT, also where its zone is left out.
        return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds())


def server_time(session: HttpSession, url: str) -> datetime | None:
    """Return the time by the server at `url`, to the second; None where it does not answer, or has no clock to show."""
    try:
        # Any answer has the header, a refusal too.
        answer = session.request("GET", url, timeout=(_CONNECT_S, _CONNECT_S))
        return parsedate_to_datetime(answer.headers.get("Date", ""))
    except (requests.RequestException, ValueError):
        return None


class HttpCaller:
    """Calls over one session, each within one time-out."""

    def __init__(self, session: HttpSession, clock: Clock, timeout: timedelta) -> None:
        self._session = session
        self._clock = clock
        self._timeout = timeout

    def call(
        self,
        verb: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        repeat_on: Collection[int] = (),
    ) -> Reply:
        """Send a request, again on the statuses `repeat_on` while there is time. Never raises for what comes back."""
        end = self._clock.now() + self._timeout
        reply = self._once(verb, url, params, headers, body, end)
        for repeat in range(_MAX_TRIES - 1):
            if reply.status not in repeat_on:
                break
            pause = self._pause(repeat, reply)
            if self._clock.now() + pause >= end:
                break
            self._clock.sleep(pause.total_seconds())
            reply = self._once(verb, url, params, headers, body, end)
        return reply

    def _once(
        self,
        verb: str,
        url: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        body: bytes | None,
        end: datetime,
    ) -> Reply:
        left = (end - self._clock.now()).total_seconds()
        timeout = (min(_CONNECT_S, left), left)
        try:
            response = self._session.request(
                verb, url, params=params, data=body, headers=headers, timeout=timeout
            )
        except requests.RequestException as error:
            return Reply(status=NO_ANSWER, problem=f"{type(error).__name__}: {error}")
        return Reply(status=response.status_code, content=response.content, headers=response.headers)

    def _pause(self, repeat: int, reply: Reply) -> timedelta:
        backoff = _FIRST_PAUSE_S * 2**repeat * (0.5 + self._clock.jitter() / 2)
        return timedelta(seconds=max(backoff, reply.retry_after_s(self._clock.now()) or 0.0))

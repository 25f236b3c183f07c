"""Signed HTTP sessions for Google's REST APIs.

A session is cheap to make: credentials are looked up at the first call, because an idle tick calls no API and should
not ask the metadata server for a token.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

import google.auth
import requests
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession
from requests.adapters import HTTPAdapter

from runtender.gcp.trust import POOLED_CONNECTIONS

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"


class HttpAnswer(Protocol):
    """What the adapters use of `requests.Response`. Names of `headers` are found in any case."""

    @property
    def status_code(self) -> int: ...

    @property
    def content(self) -> bytes: ...

    @property
    def headers(self) -> Mapping[str, str]: ...


class HttpSession(Protocol):
    """What the adapters use of `requests.Session`."""

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: tuple[float, float] | None = None,
    ) -> HttpAnswer:
        """Send one request; `timeout` is for connecting and for reading. Raises `requests.RequestException`."""


def google_session(
    scopes: Sequence[str] = (CLOUD_PLATFORM,), https: HTTPAdapter | None = None
) -> HttpSession:
    """Return a session that signs with the application default credentials. Safe for many threads.

    `https` carries its calls where the public roots are not what is to be trusted.
    """
    return _GoogleSession(tuple(scopes), https)


def plain_session(https: HTTPAdapter | None = None) -> HttpSession:
    """Return a session that signs nothing and takes no proxy from the environment: for servers of this machine."""
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", HTTPAdapter(pool_maxsize=POOLED_CONNECTIONS))
    if https is not None:
        session.mount("https://", https)
    return session


class _GoogleSession:
    def __init__(self, scopes: tuple[str, ...], https: HTTPAdapter | None) -> None:
        self._scopes = scopes
        self._https = https
        self._lock = threading.Lock()
        self._made: AuthorizedSession | None = None

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: tuple[float, float] | None = None,
    ) -> requests.Response:
        sent = dict(headers or {})
        # Over all: fetching a token, sending, and once more after a 401.
        allowed = sum(timeout) if timeout else None
        try:
            response: requests.Response = self._session().request(  # type: ignore[no-untyped-call]
                method, url, params=params, data=data, headers=sent, timeout=timeout, max_allowed_time=allowed
            )
        except GoogleAuthError as error:
            # Nothing was sent; for the caller that is a connection which did not come about.
            raise requests.ConnectionError(f"no credentials for {url}: {error}") from error
        return response

    def _session(self) -> AuthorizedSession:
        with self._lock:
            if self._made is None:
                credentials, _project = google.auth.default(scopes=self._scopes)
                self._made = AuthorizedSession(credentials)  # type: ignore[no-untyped-call]
                self._made.mount("https://", self._https or HTTPAdapter(pool_maxsize=POOLED_CONNECTIONS))
            return self._made

"""GKE and the Kubernetes APIs of its clusters behind the Api port: one adapter that knows where each cluster is reached.

A request that names a cluster goes to that cluster's own API. Where that is, and whose certificate it has, the GKE API says;
the answer is kept for some minutes, and dropped as soon as something about it seems wrong. A connection whose certificate
cannot be verified is not made.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from requests.adapters import HTTPAdapter

from runtender.capacity.classify import classify_http
from runtender.capacity.kubernetes import CLUSTER_NOT_FOUND, status_of
from runtender.gcp.compute import RestApi
from runtender.gcp.http import NO_ANSWER
from runtender.gcp.session import CLOUD_PLATFORM, HttpSession, google_session
from runtender.gcp.trust import trusting
from runtender.model import Verdict
from runtender.ports import ApiAnswer, ApiRequest, Clock
from runtender.runtimes.cluster import Endpoint, endpoint_of

CONTAINER_URL = "https://container.googleapis.com/v1"
USERINFO_EMAIL = "https://www.googleapis.com/auth/userinfo.email"
SCOPES = (CLOUD_PLATFORM, USERINFO_EMAIL)
"""With the first alone a cluster sees only the account's number, which no binding of its names."""

Sessions = Callable[[HTTPAdapter | None], HttpSession]

_GET = "container.projects.locations.clusters.get"
_FRESH = timedelta(minutes=5)
_UNAUTHENTICATED, _TOO_MANY = 401, 429
# Of a call's time, what must be left once its cluster is found.
_LEAST_SHARE = 0.1


def google_sessions(https: HTTPAdapter | None) -> HttpSession:
    """Return a session that signs as clusters need it, over `https` where that is given."""
    return google_session(SCOPES, https)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Route:
    """How a cluster is reached until `until`."""

    endpoint: Endpoint
    session: HttpSession
    until: datetime


class GkeApi:
    """The GKE API at one base address, and the Kubernetes APIs of the clusters that it knows. Safe for many threads."""

    def __init__(
        self,
        base_url: str = CONTAINER_URL,
        *,
        clock: Clock,
        sessions: Sessions = google_sessions,
        roots: str | None = None,
        timeout: timedelta = timedelta(seconds=30),
    ) -> None:
        """Send to `base_url`, and to clusters as it names them; `timeout` bounds a call with all that it takes.

        `roots` (PEM) are trusted for clusters' names instead of the public ones.
        """
        self._base_url = base_url
        self._clock = clock
        self._sessions = sessions
        self._roots = roots
        self._timeout = timeout
        self._google = sessions(None)
        self._lock = threading.Lock()
        self._routes: dict[str, _Route] = {}

    def send(self, request: ApiRequest) -> ApiAnswer:
        end = self._clock.now() + self._timeout
        if not request.cluster:
            answer = self._rest(self._google, self._base_url, end).send(request)
            if answer.ok and request.method_id == _GET:
                # Whoever looks a cluster up will call it next.
                self._keep(request.path.removeprefix("/"), answer)
            return answer
        route = self._known(request.cluster) or self._find(request.cluster, end)
        if isinstance(route, ApiAnswer):
            return route
        if end - self._clock.now() < self._timeout * _LEAST_SHARE:
            return _unsent(request.cluster, "finding it took all the time there was")
        answer = self._rest(route.session, f"https://{route.endpoint.host}", end).send(request)
        if _doubts_route(answer):
            self._forget(request.cluster, route)
        return answer

    def _rest(self, session: HttpSession, base_url: str, end: datetime) -> RestApi:
        return RestApi(session, base_url, clock=self._clock, timeout=end - self._clock.now())

    def _known(self, cluster: str) -> _Route | None:
        with self._lock:
            route = self._routes.get(cluster)
        return route if route is not None and self._clock.now() < route.until else None

    def _forget(self, cluster: str, route: _Route) -> None:
        with self._lock:
            # Another thread may have found a better one meanwhile.
            if self._routes.get(cluster) is route:
                del self._routes[cluster]

    def _find(self, cluster: str, end: datetime) -> _Route | ApiAnswer:
        """Ask where a cluster is reached; the answer to give instead where that cannot be said."""
        look = ApiRequest(method_id=_GET, verb="GET", path=f"/{cluster}")
        answer = self._rest(self._google, self._base_url, end).send(look)
        return self._keep(cluster, answer) if answer.ok else _not_found(cluster, answer)

    def _keep(self, cluster: str, answer: ApiAnswer) -> _Route | ApiAnswer:
        """Keep where a cluster is reached as the GKE API says it; the answer to give instead where it says nothing of use."""
        endpoint = endpoint_of(answer.body)
        if endpoint is None:
            return _unsent(cluster, f"it has no endpoint (status {answer.body.get('status', 'unknown')})")
        with self._lock:
            old = self._routes.get(cluster)
        try:
            kept = old.session if old and old.endpoint == endpoint else self._sessions(self._https(endpoint))
        except ValueError as error:
            return _unsent(cluster, str(error))
        route = _Route(endpoint=endpoint, session=kept, until=self._clock.now() + _FRESH)
        with self._lock:
            self._routes[cluster] = route
        return route

    def _https(self, endpoint: Endpoint) -> HTTPAdapter | None:
        """Return what verifies the endpoint; None for what the library does by itself. ValueError where nothing could."""
        if endpoint.is_name:
            return trusting(self._roots) if self._roots else None
        if endpoint.ca_certificate is None:
            raise ValueError(f"{endpoint.host} has no certificate of an authority, so it cannot be verified")
        try:
            return trusting(base64.b64decode(endpoint.ca_certificate, validate=True).decode("ascii"))
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ValueError(f"the authority of {endpoint.host} cannot be read: {error}") from error


def _doubts_route(answer: ApiAnswer) -> bool:
    """True for an answer that somebody else may have given, or nobody: the cluster may have moved."""
    if answer.status == 404:
        return not status_of(answer).spoken
    return answer.status in {NO_ANSWER, _UNAUTHENTICATED}


def _unsent(cluster: str, why: str) -> ApiAnswer:
    return ApiAnswer(status=NO_ANSWER, text=f"{cluster} was not called: {why}")


def _not_found(cluster: str, answer: ApiAnswer) -> ApiAnswer:
    """Return the GKE API's refusal in Kubernetes' form, which is what the caller of a cluster reads."""
    error = answer.body.get("error")
    said = error.get("message") if isinstance(error, dict) else None
    message = f"{cluster} was not found out: {said or answer.text or f'HTTP {answer.status}'}"
    # Google says 403 as well where Kubernetes would say that there were too many calls.
    rated = classify_http(answer).verdict is Verdict.RATE_LIMITED
    status = _TOO_MANY if rated else answer.status
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": CLUSTER_NOT_FOUND if answer.status == 404 else "",
        "message": message,
        "code": status,
    }
    return ApiAnswer(status=status, body=body, text=message, retry_after_s=answer.retry_after_s)

"""Google's REST APIs (Compute Engine, GKE, Service Usage, a cluster's Kubernetes API) behind the Api port.

The runtimes describe requests and read answers; this adapter only carries them.
"""

from __future__ import annotations

import json
from datetime import timedelta

from runtender.gcp.http import PASSING, HttpCaller
from runtender.gcp.session import HttpSession
from runtender.ports import ApiAnswer, ApiRequest, Clock

COMPUTE_URL = "https://compute.googleapis.com/compute/v1"

# Enough for every documented error body, and for the words of a proxy in between.
_TEXT_LIMIT = 65_536


class RestApi:
    """One service at one base address."""

    def __init__(
        self,
        session: HttpSession,
        base_url: str,
        *,
        clock: Clock,
        timeout: timedelta = timedelta(seconds=30),
    ) -> None:
        """Send to `base_url` followed by a request's path; `timeout` bounds a call with all its repeats."""
        self._caller = HttpCaller(session, clock, timeout)
        self._base_url = base_url.rstrip("/")
        self._clock = clock

    def send(self, request: ApiRequest) -> ApiAnswer:
        # A write is sent once. Nobody may guess whether an unanswered one was taken: the next step looks.
        # Nor is a 429 repeated: it would spend the budget that is already gone.
        reads = request.verb == "GET" and not request.creates
        body = None if request.body is None else json.dumps(request.body).encode()
        reply = self._caller.call(
            request.verb,
            self._base_url + request.path,
            params=request.query,
            headers={} if body is None else {"Content-Type": "application/json"},
            body=body,
            repeat_on=PASSING if reads else (),
        )
        return ApiAnswer(
            status=reply.status,
            body=reply.json(),
            text=reply.text(_TEXT_LIMIT),
            retry_after_s=reply.retry_after_s(self._clock.now()),
        )

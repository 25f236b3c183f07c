"""The answers that go wrong, in the bodies that Google's APIs and Kubernetes send."""

from __future__ import annotations

from collections.abc import Mapping

from runtender.local.http import DROPPED, HttpResponse, google_error, json_response
from runtender.local.kubernetes.errors import failure
from runtender.local.scenario.rules import Answer

ANSWERS: Mapping[Answer, HttpResponse] = {
    Answer.NO_ANSWER: DROPPED,
    Answer.FUNCTIONS_KILLED: DROPPED,
    Answer.RATE_LIMITED: google_error(403, "rateLimitExceeded", "Rate Limit Exceeded"),
    Answer.FORBIDDEN: google_error(403, "forbidden", "Required permission is missing for this resource"),
    Answer.NOT_FOUND: google_error(404, "notFound", "The resource was not found"),
    Answer.ALREADY_EXISTS: google_error(409, "alreadyExists", "The resource already exists"),
    Answer.TOO_MANY_REQUESTS: google_error(429, "rateLimitExceeded", "Too many requests"),
    Answer.INTERNAL_ERROR: google_error(500, "backendError", "Internal error encountered"),
    Answer.UNAVAILABLE: google_error(503, "backendError", "The service is currently unavailable"),
}

_STATUSES: Mapping[Answer, tuple[int, str]] = {
    Answer.RATE_LIMITED: (429, "TooManyRequests"),
    Answer.FORBIDDEN: (403, "Forbidden"),
    Answer.NOT_FOUND: (404, "NotFound"),
    Answer.ALREADY_EXISTS: (409, "AlreadyExists"),
    Answer.TOO_MANY_REQUESTS: (429, "TooManyRequests"),
    Answer.INTERNAL_ERROR: (500, "InternalError"),
    Answer.UNAVAILABLE: (503, "ServiceUnavailable"),
}


def answer_to(method: str, answer: Answer) -> HttpResponse:
    """Return how the API that a method belongs to says it."""
    if not method.startswith("kubernetes.") or answer not in _STATUSES:
        return ANSWERS[answer]
    code, reason = _STATUSES[answer]
    return json_response(code, failure(code, reason, f"the scenario says so: {reason}"))

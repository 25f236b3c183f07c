"""The answers that go wrong, in the bodies that Google's APIs send."""

from __future__ import annotations

from collections.abc import Mapping

from runtender.local.http import DROPPED, HttpResponse, google_error
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

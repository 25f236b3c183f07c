"""What a Kubernetes API says instead of the truth when something is wrong with it, in the bodies that it sends."""

from __future__ import annotations

from runtender.local.http import HttpResponse, json_response
from runtender.local.kubernetes.errors import failure


def status(code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> HttpResponse:
    """Return a `Status` of failure."""
    return json_response(code, failure(code, reason, message), headers)


UNAUTHORIZED = status(401, "Unauthorized", "Unauthorized")
FORBIDDEN = status(403, "Forbidden", 'jobs.batch is forbidden: User "plane" cannot do this here')
NO_QUOTA = status(
    403, "Forbidden", "jobs.batch is forbidden: exceeded quota: jobs, requested: 1, used: 9, limited: 9"
)
NO_NAMESPACE = status(404, "NotFound", 'namespaces "default" not found')
NAME_TAKEN = status(409, "AlreadyExists", 'jobs.batch "taken" already exists')
CONFLICT = status(409, "Conflict", "Operation cannot be fulfilled on resourcequotas: please try again")
TOO_MANY = status(429, "TooManyRequests", "the server has received too many requests", {"Retry-After": "1"})
INTERNAL = status(500, "InternalError", "an error on the server has prevented the request from succeeding")
UNAVAILABLE = status(503, "ServiceUnavailable", "the server is currently unable to handle the request")
NOT_THERE = HttpResponse(status=404, headers={"Content-Type": "text/html"}, body=b"<html>not here</html>")
"""What somebody on the way says who knows no such cluster."""

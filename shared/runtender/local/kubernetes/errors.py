"""The refusals of a Kubernetes API server: HTTP errors with a `Status` body, in the words that clients know.

Clients go by the HTTP status and the body's `reason`, and show `message`; so these are what has to be right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtender.errors import RuntenderError
from runtender.local.http import HttpResponse, json_response
from runtender.local.kubernetes.resources import Resource


class StatusError(RuntenderError):
    """A request that is answered with a `Status` of failure."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        status = failure(code, reason, message, details)
        self.response: HttpResponse = json_response(code, status, headers)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """One field that is wrong. `reason` is how Kubernetes names the trouble (`FieldValueInvalid`), `words` what it says."""

    field: str
    reason: str
    words: str


def failure(code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the `Status` that tells of a failure."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details:
        status["details"] = dict(details)
    return {**status, "code": code}


def not_found(resource: Resource, name: str) -> StatusError:
    """There is no such object."""
    return StatusError(
        404, "NotFound", f'{resource.qualified} "{name}" not found', details=_of(resource, name)
    )


def no_such_path() -> StatusError:
    """Nothing is served at a path."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def method_not_allowed() -> StatusError:
    """A path has no such verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message)


def already_exists(resource: Resource, name: str) -> StatusError:
    """An object of that name stands there already."""
    message = f'{resource.qualified} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_of(resource, name))


def conflict(resource: Resource, name: str, why: str) -> StatusError:
    """The object is not the one that the caller meant, or not as the caller knew it."""
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_of(resource, name))


def forbidden(resource: Resource, name: str, why: str) -> StatusError:
    """The caller may not do this, here, now."""
    message = f'{resource.qualified} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, details=_of(resource, name))


def bad_request(message: str) -> StatusError:
    """The request cannot be understood."""
    return StatusError(400, "BadRequest", message)


def unsupported_media(content_type: str, taken: Iterable[str]) -> StatusError:
    """A body comes in a format that is not taken."""
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(taken)}"
    )
    return StatusError(415, "UnsupportedMediaType", f"{message} (not {content_type or 'none'})")


def expired(message: str) -> StatusError:
    """A version or a list that the server no longer remembers."""
    return StatusError(410, "Expired", message)


def internal_error(why: str) -> StatusError:
    """Something in the server went wrong."""
    return StatusError(500, "InternalError", f"Internal error occurred: {why}")


def invalid(resource: Resource, name: str, causes: Iterable[Cause]) -> StatusError:
    """An object that breaks the rules of its kind; each broken rule names its field."""
    found = tuple(causes)
    listed = [f"{cause.field}: {cause.words}" for cause in found]
    words = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    group = f".{resource.group}" if resource.group else ""
    message = f'{resource.kind}{group} "{name}" is invalid: {words}'
    details = {
        "name": name,
        **({"group": resource.group} if resource.group else {}),
        "kind": resource.kind,
        "causes": [{"reason": cause.reason, "message": cause.words, "field": cause.field} for cause in found],
    }
    return StatusError(422, "Invalid", message, details=details)


def required(field: str, words: str = "") -> Cause:
    """A field that has to be there."""
    return Cause(field=field, reason="FieldValueRequired", words=f"Required value{words and ': '}{words}")


def wrong_value(field: str, value: object, words: str) -> Cause:
    """A field whose value is not taken."""
    return Cause(field=field, reason="FieldValueInvalid", words=f"Invalid value: {_shown(value)}: {words}")


def forbidden_field(field: str, words: str) -> Cause:
    """A field that may not be there, or not be changed."""
    return Cause(field=field, reason="FieldValueForbidden", words=f"Forbidden: {words}")


def immutable(field: str, value: object) -> Cause:
    """A field that may not be changed."""
    return wrong_value(field, value, "field is immutable")


def unsupported(field: str, value: object, choices: Iterable[str]) -> Cause:
    """A field whose value is none of the few there are."""
    listed = ", ".join(f'"{choice}"' for choice in choices)
    words = f"Unsupported value: {_shown(value)}: supported values: {listed}"
    return Cause(field=field, reason="FieldValueNotSupported", words=words)


def _of(resource: Resource, name: str) -> dict[str, Any]:
    return {
        "name": name,
        **({"group": resource.group} if resource.group else {}),
        "kind": resource.plural,
    }


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict | list):
        return "{...}" if isinstance(value, dict) else "[...]"
    return str(value).lower() if isinstance(value, bool) else str(value)

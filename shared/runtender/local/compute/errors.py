"""The refusals of Compute Engine, in the words and bodies that Google documents or that users have seen.

There are two kinds: an HTTP error (`ApiError`), and the error inside an operation that was accepted first
(`OperationError`). Clients classify by status, reason and code, so these are what has to be right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtender.errors import RuntenderError
from runtender.local.http import HttpResponse, google_error

_STOCKOUT_HELP = "https://cloud.google.com/compute/docs/resource-error"


class ApiError(RuntenderError):
    """A request that is answered with an HTTP error."""

    def __init__(self, status: int, reason: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.response: HttpResponse = google_error(status, reason, message, **more)


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationError:
    """Why an operation ended badly. `status` and `phrase` are the HTTP ones that the operation carries."""

    code: str
    message: str
    status: int
    phrase: str
    details: tuple[Mapping[str, Any], ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the operation's `error` object."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            error["errorDetails"] = [dict(detail) for detail in self.details]
        return {"errors": [error]}


def not_found(resource: str) -> ApiError:
    """There is nothing at `resource` (`projects/p/zones/z/instances/n`)."""
    return ApiError(404, "notFound", f"The resource '{resource}' was not found")


def already_exists(resource: str) -> ApiError:
    """Something stands at `resource` already."""
    return ApiError(409, "alreadyExists", f"The resource '{resource}' already exists")


def invalid_value(field: str, value: object, why: str) -> ApiError:
    """A field or parameter has a value that is not taken."""
    return ApiError(400, "invalid", f"Invalid value for field '{field}': '{value}'. {why}")


def required(field: str) -> ApiError:
    """A field is missing that the API demands, though its schema does not say so."""
    return ApiError(400, "required", f"Required field '{field}' not specified")


def bad_payload(field: str, problem: str) -> ApiError:
    """The body, or the query, does not fit the published schema; `field` is the path of the offending object."""
    details = [
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": field, "description": problem}],
        }
    ]
    return ApiError(400, "invalid", problem, word="INVALID_ARGUMENT", details=details)


def too_large(field: str, limit: int, size: int) -> ApiError:
    """A text is longer than the API takes."""
    message = (
        f"Value for field '{field}' is too large: maximum size {limit} character(s); actual size {size}."
    )
    return ApiError(413, "uploadTooLarge", message)


def in_use(resource: str, user: str) -> ApiError:
    """A disk that is still attached cannot be deleted."""
    message = f"The disk resource '{resource}' is already being used by '{user}'"
    return ApiError(400, "resourceInUseByAnotherResource", message)


def stockout_answer(zone_path: str) -> ApiError:
    """A stock-out told at once, instead of by the operation."""
    message = f"The zone '{zone_path}' does not have enough resources available to fulfill the request."
    return ApiError(
        503, "ZONE_RESOURCE_POOL_EXHAUSTED", f"{message}  Try a different zone, or try again later."
    )


def stockout(
    *, zone_path: str, machine: str, attachment: str, zones_available: Iterable[str]
) -> OperationError:
    """A stock-out found while the machine was being made; with details where other zones are recommended."""
    zones = ",".join(zones_available)
    message = f"The zone '{zone_path}' does not have enough resources available to fulfill the request."
    if not zones:
        return OperationError(
            code="ZONE_RESOURCE_POOL_EXHAUSTED",
            message=f"{message}  Try a different zone, or try again later.",
            status=503,
            phrase="SERVICE UNAVAILABLE",
        )
    zone = zone_path.rpartition("/")[2]
    facts = {"vmType": machine, "attachment": attachment, "zone": zone, "zonesAvailable": zones}
    words = f"A {machine} VM instance is currently unavailable in the {zone} zone. Consider trying {zones}."
    info = {"reason": "resource_availability", "domain": "compute.googleapis.com", "metadatas": facts}
    return OperationError(
        code="ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        message=f"{message}  '(resource type:compute)'.",
        status=503,
        phrase="SERVICE UNAVAILABLE",
        details=(
            {"help": {"links": [{"description": "Troubleshooting documentation", "url": _STOCKOUT_HELP}]}},
            {"localizedMessage": {"locale": "en-US", "message": words}},
            {"errorInfo": info},
        ),
    )


def quota_exceeded(*, metric: str, limit: float, region: str | None) -> OperationError:
    """More was asked for than the region (None: the whole project) may have."""
    where = f"in region {region}" if region else "globally"
    scope = "per-project-region" if region else "per-project"
    quota = {
        "metricName": f"compute.googleapis.com/{metric.lower()}",
        "limitName": f"{metric.replace('_', '-')}-{scope}",
        "limit": limit,
        "dimensions": {"region": region or "global"},
    }
    return OperationError(
        code="QUOTA_EXCEEDED",
        message=f"Quota '{metric}' exceeded.  Limit: {limit:.1f} {where}.",
        status=403,
        phrase="FORBIDDEN",
        details=({"quotaInfo": quota},),
    )


def disk_in_use(resource: str, user: str) -> OperationError:
    """The boot disk's name belongs to a disk of another machine."""
    return OperationError(
        code="RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
        message=f"The disk resource '{resource}' is already being used by '{user}'",
        status=400,
        phrase="BAD REQUEST",
    )


def cancelled() -> OperationError:
    """The machine was deleted before its insert had finished."""
    return OperationError(
        code="OPERATION_CANCELED_BY_USER",
        message="Operation was canceled by user ''.",
        status=409,
        phrase="CONFLICT",
    )

"""Which path is which method of the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtender.local.compute.errors import invalid_value
from runtender.local.http import HttpRequest

BASE = "compute/v1"

_ROUTES: Mapping[str, tuple[str, str]] = {
    "compute.projects.get": ("GET", "projects/{project}"),
    "compute.regions.get": ("GET", "projects/{project}/regions/{region}"),
    "compute.zones.list": ("GET", "projects/{project}/zones"),
    "compute.instances.aggregatedList": ("GET", "projects/{project}/aggregated/instances"),
    "compute.instances.list": ("GET", "projects/{project}/zones/{zone}/instances"),
    "compute.instances.insert": ("POST", "projects/{project}/zones/{zone}/instances"),
    "compute.instances.get": ("GET", "projects/{project}/zones/{zone}/instances/{name}"),
    "compute.instances.delete": ("DELETE", "projects/{project}/zones/{zone}/instances/{name}"),
    "compute.instances.getSerialPortOutput": (
        "GET",
        "projects/{project}/zones/{zone}/instances/{name}/serialPort",
    ),
    "compute.zoneOperations.list": ("GET", "projects/{project}/zones/{zone}/operations"),
    "compute.zoneOperations.get": ("GET", "projects/{project}/zones/{zone}/operations/{name}"),
    "compute.disks.list": ("GET", "projects/{project}/zones/{zone}/disks"),
    "compute.disks.get": ("GET", "projects/{project}/zones/{zone}/disks/{name}"),
    "compute.disks.delete": ("DELETE", "projects/{project}/zones/{zone}/disks/{name}"),
}
METHODS = tuple(_ROUTES)
"""The ids of the methods that are simulated."""

_PATTERNS = tuple(
    (method_id, verb, tuple(f"{BASE}/{pattern}".split("/"))) for method_id, (verb, pattern) in _ROUTES.items()
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A request whose method is known, with the variable parts of its path."""

    method_id: str
    parts: Mapping[str, str]
    request: HttpRequest

    @property
    def zone(self) -> str:
        """The zone in the path."""
        return self.parts["zone"]

    @property
    def name(self) -> str:
        """The resource's name (or numeric id) in the path."""
        return self.parts["name"]

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters."""
        return self.request.query

    def whole(self, parameter: str, default: int) -> int:
        """Read a query parameter that is a whole number; raises `ApiError` when it is none."""
        text = self.query.get(parameter, "")
        try:
            return int(text) if text else default
        except ValueError as error:
            raise invalid_value(parameter, text, "Must be a whole number.") from error


def find_call(request: HttpRequest) -> Call | None:
    """Return the call that a request makes; None when no method has its path and verb."""
    segments = request.segments
    for method_id, verb, pattern in _PATTERNS:
        if verb == request.method and (parts := _match(pattern, segments)) is not None:
            return Call(method_id=method_id, parts=parts, request=request)
    return None


def _match(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    parts = {}
    for wanted, found in zip(pattern, segments, strict=True):
        if wanted.startswith("{"):
            parts[wanted.strip("{}")] = found
        elif wanted != found:
            return None
    return parts

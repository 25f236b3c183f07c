"""Which path and verb is which call: on objects of a kind, on a part of one, or on the server itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtender.local.http import HttpRequest
from runtender.local.kubernetes.errors import method_not_allowed, no_such_path
from runtender.local.kubernetes.queries import flag
from runtender.local.kubernetes.resources import GROUPS, RESOURCES, Resource

_ON_ONE = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_MANY = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_ON_PART = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}

# The first word of a path that is about the server, and what it is about.
_SERVER = {
    "version": "version",
    "healthz": "health",
    "livez": "health",
    "readyz": "health",
    "openapi": "openapi",
    "api": "discovery",
    "apis": "discovery",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call on objects. `name` is "" on all of a kind, `namespace` "" on all of the cluster."""

    verb: str
    resource: Resource
    namespace: str
    name: str
    subresource: str
    request: HttpRequest

    @property
    def method_id(self) -> str:
        """How the call is counted and how faults name it."""
        parts = ("kubernetes", self.resource.plural, self.subresource, self.verb)
        return ".".join(filter(None, parts))

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters."""
        return self.request.query

    @property
    def dry(self) -> bool:
        """True for a call that is only tried."""
        return self.query.get("dryRun") == "All"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerCall:
    """A call on the server itself: its version, its health, what it offers."""

    about: str
    request: HttpRequest

    @property
    def method_id(self) -> str:
        """How the call is counted and how faults name it."""
        return f"kubernetes.{self.about}.get"


def find_call(request: HttpRequest) -> Call | ServerCall:
    """Return the call that a request makes; raises `StatusError` 404 or 405 when there is none."""
    segments = request.segments
    group, rest = _group(segments)
    if group is None or not rest:
        about = _SERVER.get(segments[0])
        if about is None:
            raise no_such_path()
        if request.method not in {"GET", "HEAD"}:
            raise method_not_allowed()
        return ServerCall(about=about, request=request)
    return _object_call(group, rest, request)


def _group(segments: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Take the API's group and version off a path."""
    if segments[:2] == ("api", "v1"):
        return "", segments[2:]
    if segments[0] == "apis" and len(segments) > 2 and segments[1] in GROUPS and segments[2] == "v1":
        return segments[1], segments[3:]
    if segments[0] in {"api", "apis"} and len(segments) > 3:
        raise no_such_path()
    return None, segments


def _object_call(group: str, rest: tuple[str, ...], request: HttpRequest) -> Call:
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _subresources("namespaces"):
        namespace, rest = rest[1], rest[2:]
    resource = RESOURCES.get(rest[0])
    if resource is None or resource.group != group or len(rest) > 3:
        raise no_such_path()
    if namespace and not resource.namespaced:
        raise no_such_path()
    name, subresource = ([*rest[1:], "", ""])[:2]
    return Call(
        verb=_verb(resource, name, subresource, request),
        resource=resource,
        namespace=namespace,
        name=name,
        subresource=subresource,
        request=request,
    )


def _subresources(plural: str) -> Mapping[str, tuple[str, ...]]:
    return RESOURCES[plural].subresources


def _verb(resource: Resource, name: str, subresource: str, request: HttpRequest) -> str:
    if subresource:
        if subresource not in resource.subresources:
            raise no_such_path()
        verb = _ON_PART.get(request.method, "")
        if verb not in resource.subresources[subresource]:
            raise method_not_allowed()
        return verb
    verb = (_ON_ONE if name else _ON_MANY).get(request.method, "")
    if not verb:
        raise method_not_allowed()
    watches = verb == "list" and flag(request.query, "watch")
    return "watch" if watches else verb

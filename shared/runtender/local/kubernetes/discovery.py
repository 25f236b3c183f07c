"""What the server says about itself: its version, its groups and kinds, and as much OpenAPI as kubectl asks for."""

from __future__ import annotations

from typing import Any

from runtender.local.http import HttpRequest, HttpResponse, json_response
from runtender.local.kubernetes.errors import no_such_path
from runtender.local.kubernetes.resources import GROUPS, RESOURCES, Resource

_PATCH_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def answer(about: str, request: HttpRequest, minor: int) -> HttpResponse:
    """Answer a call on the server itself; raises `StatusError` 404."""
    match about:
        case "version":
            return json_response(200, version(minor))
        case "health":
            return HttpResponse(status=200, headers={"Content-Type": "text/plain"}, body=b"ok")
        case "openapi":
            return json_response(200, _openapi(request.segments))
        case _:
            return json_response(200, _discovery(request.segments))


def version(minor: int) -> dict[str, str]:
    """Return the version document."""
    return {
        "major": "1",
        "minor": str(minor),
        "emulationMajor": "1",
        "emulationMinor": str(minor),
        "gitVersion": f"v1.{minor}.1-gke.1000000",
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "2025-09-10T00:00:00Z",
        "goVersion": "go1.24.6",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _discovery(segments: tuple[str, ...]) -> dict[str, Any]:
    match segments:
        case ("api",):
            address = {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:443"}
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}
        case ("apis",):
            groups = [_group(name) for name in GROUPS]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ("api", "v1"):
            return _kinds("", "v1")
        case ("apis", name) if name in GROUPS:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(name)}
        case ("apis", name, "v1") if name in GROUPS:
            return _kinds(name, f"{name}/v1")
    raise no_such_path()


def _group(name: str) -> dict[str, Any]:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _kinds(group: str, group_version: str) -> dict[str, Any]:
    listed = [entry for resource in _of(group) for entry in _entries(resource)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _of(group: str) -> list[Resource]:
    return [resource for resource in RESOURCES.values() if resource.group == group]


def _entries(resource: Resource) -> list[dict[str, Any]]:
    common = {"namespaced": resource.namespaced, "kind": resource.kind}
    whole = {
        "name": resource.plural,
        "singularName": resource.singular,
        **common,
        "verbs": list(resource.verbs),
        **({"shortNames": list(resource.short_names)} if resource.short_names else {}),
        **({"categories": list(resource.categories)} if resource.categories else {}),
    }
    parts = [
        {
            "name": f"{resource.plural}/{part}",
            "singularName": "",
            **common,
            **_kind_of(part),
            "verbs": list(verbs),
        }
        for part, verbs in resource.subresources.items()
    ]
    return [whole, *parts]


def _kind_of(part: str) -> dict[str, str]:
    return {"group": "policy", "version": "v1", "kind": "Eviction"} if part == "eviction" else {}


def _openapi(segments: tuple[str, ...]) -> dict[str, Any]:
    """Return the index of the OpenAPI documents, or one of them.

    kubectl reads there whether a kind's patch takes `fieldValidation`, and leaves validation to the server if so.
    """
    if segments == ("openapi", "v3"):
        names = ["api/v1", *(f"apis/{group}/v1" for group in GROUPS)]
        paths = {name: {"serverRelativeURL": f"/openapi/v3/{name}"} for name in names}
        return {"paths": paths}
    match segments[:2], segments[2:]:
        case ("openapi", "v3"), ("api", "v1"):
            return _document("")
        case ("openapi", "v3"), ("apis", group, "v1") if group in GROUPS:
            return _document(group)
    raise no_such_path()


def _document(group: str) -> dict[str, Any]:
    base = f"/apis/{group}/v1" if group else "/api/v1"
    paths: dict[str, Any] = {}
    for resource in _of(group):
        where = "/namespaces/{namespace}" if resource.namespaced else ""
        parameters = [{"name": name, "in": "query"} for name in _PATCH_PARAMETERS]
        kind = {"group": group, "version": "v1", "kind": resource.kind}
        patch = {"parameters": parameters, "x-kubernetes-group-version-kind": kind, "responses": {}}
        paths[f"{base}{where}/{resource.plural}/{{name}}"] = {"patch": patch}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1"},
        "paths": paths,
        "components": {"schemas": {}},
    }

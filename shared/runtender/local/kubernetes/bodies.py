"""The bodies of requests: read, and held against what the path and the schemas say."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runtender.local.kubernetes.documents import Document
from runtender.local.kubernetes.errors import (
    bad_request,
    invalid,
    required,
    unsupported,
    unsupported_media,
)
from runtender.local.kubernetes.resources import Resource
from runtender.local.kubernetes.routes import Call
from runtender.local.kubernetes.schema import Problem, Schemas, Trouble, without_unknown

_JSON = "application/json"
_TEMPLATE = ("spec", "template", "spec", "containers")
_PARTS = {"pods": ("spec", "containers"), "jobs": _TEMPLATE, "deployments": _TEMPLATE}


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """An object that was sent, with what the answer has to warn of."""

    document: Document
    warnings: tuple[str, ...] = ()


def read_object(call: Call, schemas: Schemas | None) -> Body:
    """Read the object that a call carries; raises `StatusError` 400, 415 or 422."""
    return check_object(call, read_json(call), schemas)


def check_object(call: Call, document: Document, schemas: Schemas | None) -> Body:
    """Hold an object against its path and its schema. The document is changed: what is not known leaves it.

    Unknown names are refused, warned of or passed over, as `fieldValidation` says.
    """
    _check_identity(call, document)
    problems = [] if schemas is None else schemas.problems(call.resource, document)
    _refuse_types(call.resource, problems)
    unknown = [f'unknown field "{one.path}"' for one in problems if one.trouble is Trouble.UNKNOWN]
    mode = call.query.get("fieldValidation", "Warn")
    if unknown and mode == "Strict":
        raise bad_request(f"{call.resource.kind} in version \"v1\" cannot be handled as a {call.resource.kind}: "
                          f"strict decoding error: {', '.join(unknown)}")  # fmt: skip
    without_unknown(document, problems)
    _refuse_values(call.resource, document, problems)
    _refuse_gaps(call.resource, document)
    return Body(document=document, warnings=tuple(unknown) if mode == "Warn" else ())


def read_json(call: Call, *, taken: Iterable[str] = (_JSON,)) -> Any:
    """Parse the body of a call; raises `StatusError` 415 for another format and 400 for what is no JSON object."""
    content_type = content_type_of(call)
    # Clients that send no type, or curl's own, mean JSON.
    if content_type not in {*taken, "", "application/x-www-form-urlencoded"}:
        raise unsupported_media(content_type, taken)
    try:
        document = call.request.json()
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {call.resource.kind}): {error}"
        ) from error
    return document


def content_type_of(call: Call) -> str:
    """Return the format of a call's body."""
    return call.request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _check_identity(call: Call, document: Any) -> None:
    resource = call.resource
    if not isinstance(document, dict) or not isinstance(document.setdefault("metadata", {}), dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    for field, wanted in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        found = document.setdefault(field, wanted)
        if found != wanted:
            words = "kind" if field == "kind" else "API version"
            raise bad_request(
                f"the {words} in the data ({found}) does not match the expected {words} ({wanted})"
            )
    metadata = document["metadata"]
    if resource.namespaced and metadata.setdefault("namespace", call.namespace) != call.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if call.name and metadata.setdefault("name", call.name) != call.name:
        name = metadata["name"]
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")


def _refuse_types(resource: Resource, problems: Iterable[Problem]) -> None:
    for problem in problems:
        if problem.trouble is Trouble.TYPE:
            kind = resource.kind
            raise bad_request(
                f'{kind} in version "v1" cannot be handled as a {kind}: json: cannot unmarshal '
                f"{_json_type(problem.value)} into Go struct field {kind}.{problem.path} of type {'/'.join(problem.wanted)}"
            )


def _refuse_values(resource: Resource, document: Document, problems: Iterable[Problem]) -> None:
    causes = [
        required(one.path) if one.trouble is Trouble.MISSING else unsupported(one.path, one.value, one.wanted)
        for one in problems
        if one.trouble in {Trouble.MISSING, Trouble.CHOICE}
    ]
    if causes:
        metadata = document["metadata"]
        raise invalid(resource, str(metadata.get("name") or metadata.get("generateName", "")), causes)


def _refuse_gaps(resource: Resource, document: Document) -> None:
    """Refuse an object without the parts that all else here relies on, also where no schemas are installed."""
    found: Any = document
    for depth, step in enumerate(_PARTS.get(resource.plural, ()), 1):
        found = found.get(step)
        if not isinstance(found, dict | list):
            field = ".".join(_PARTS[resource.plural][:depth])
            raise invalid(resource, str(document["metadata"].get("name", "")), [required(field)])


def _json_type(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number"}
    return names.get(type(value), "value")

"""Calls that make and change objects."""

from __future__ import annotations

from collections.abc import Iterable

from runtender.local.http import HttpResponse, json_response
from runtender.local.kubernetes.bodies import check_object, content_type_of, read_json, read_object
from runtender.local.kubernetes.defaults import fill
from runtender.local.kubernetes.documents import Document, Key, copied, metadata_of, uid_of
from runtender.local.kubernetes.errors import (
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
    required,
    unsupported_media,
)
from runtender.local.kubernetes.parts import Parts
from runtender.local.kubernetes.patches import PATCHES
from runtender.local.kubernetes.resources import RESOURCES
from runtender.local.kubernetes.routes import Call
from runtender.local.kubernetes.validation import wrong_change, wrong_object

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

# What a client cannot change, whatever it sends.
_SERVERS_OWN = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
)


def key_of(call: Call) -> Key:
    """Return where the object of a call is kept."""
    return Key(resource=call.resource.plural, namespace=call.namespace, name=call.name)


def found(parts: Parts, call: Call) -> Document:
    """Return the object of a call; raises `StatusError` 404."""
    document = parts.cluster.store.get(key_of(call))
    if document is None:
        raise not_found(call.resource, call.name)
    return document


def create(parts: Parts, call: Call) -> HttpResponse:
    """Make an object; raises `StatusError` for one that is refused."""
    body = read_object(call, parts.schemas)
    document, cluster, resource = body.document, parts.cluster, call.resource
    metadata = document["metadata"]
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName']}{cluster.suffix()}"
    for name in _SERVERS_OWN:
        metadata.pop(name, None)
    document.pop("status", None)
    if not metadata.get("name"):
        raise invalid(resource, "", [required("metadata.name", "name or generateName is required")])
    _check_room(parts, call)
    cluster.complete(document)
    fill(resource.plural, document, cluster.minor)
    if causes := wrong_object(resource.plural, document):
        raise invalid(resource, metadata["name"], causes)
    parts.admission.admit(resource.plural, document)
    key = Key(resource=resource.plural, namespace=call.namespace, name=metadata["name"])
    if cluster.store.get(key) is not None:
        raise already_exists(resource, key.name)
    kept = document if call.dry else cluster.store.put(resource.plural, document)
    cluster.settle()
    return _answer(201, kept, body.warnings)


def update(parts: Parts, call: Call) -> HttpResponse:
    """Replace an object, or its status; raises `StatusError`."""
    body = read_object(call, parts.schemas)
    return _change(parts, call, body.document, body.warnings)


def patch(parts: Parts, call: Call) -> HttpResponse:
    """Change an object, or its status, by a patch; raises `StatusError`."""
    apply = PATCHES.get(content_type_of(call))
    if apply is None:
        raise unsupported_media(content_type_of(call), PATCHES)
    before = found(parts, call)
    document = apply(before, read_json(call, taken=PATCHES))
    body = check_object(call, copied(document), parts.schemas)
    return _change(parts, call, body.document, body.warnings)


def _check_room(parts: Parts, call: Call) -> None:
    """Refuse an object of a namespace that is not there before anything about the object itself."""
    if not call.resource.namespaced:
        return
    key = Key(resource="namespaces", namespace="", name=call.namespace)
    if parts.cluster.store.get(key) is None:
        raise not_found(RESOURCES["namespaces"], call.namespace)


def _change(parts: Parts, call: Call, wanted: Document, warnings: Iterable[str]) -> HttpResponse:
    before = found(parts, call)
    _check_identity(call, before, wanted)
    after = _merged(before, wanted, part=call.subresource)
    fill(call.resource.plural, after, parts.cluster.minor)
    if causes := wrong_change(call.resource.plural, before, after):
        raise invalid(call.resource, call.name, causes)
    kept = after if call.dry else parts.cluster.store.put(call.resource.plural, after)
    parts.cluster.settle()
    return _answer(200, kept, warnings)


def _merged(before: Document, wanted: Document, *, part: str) -> Document:
    """Return the new version: the status is changed only by its own path, all else only by the object's."""
    if part == "status":
        return {**copied(before), "status": copied(wanted.get("status") or {})}
    metadata = copied(wanted["metadata"])
    for name in _SERVERS_OWN:
        metadata.pop(name, None)
        if name in before["metadata"]:
            metadata[name] = before["metadata"][name]
    after = {**copied(wanted), "metadata": metadata}
    if "status" in before:
        after["status"] = copied(before["status"])
    return after


def _check_identity(call: Call, before: Document, wanted: Document) -> None:
    metadata = metadata_of(wanted)
    version = metadata.get("resourceVersion")
    if version and version != metadata_of(before)["resourceVersion"]:
        raise conflict(call.resource, call.name, MODIFIED)
    uid = metadata.get("uid")
    if uid and uid != uid_of(before):
        raise conflict(call.resource, call.name, precondition("UID", uid, uid_of(before)))


def precondition(what: str, wanted: str, present: str) -> str:
    """Say that an object is not the one that was meant."""
    return f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {present}"


def _answer(status: int, document: Document, warnings: Iterable[str]) -> HttpResponse:
    headers = (
        {"Warning": ", ".join(f'299 - "{_quoted(warning)}"' for warning in warnings)} if warnings else {}
    )
    return json_response(status, document, headers)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')

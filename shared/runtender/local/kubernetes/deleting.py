"""Calls that delete objects: one by its name, or many by selector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtender.local.http import HttpResponse, json_response
from runtender.local.kubernetes.bodies import read_json
from runtender.local.kubernetes.documents import Document, Key, metadata_of, name_of, namespace_of, uid_of
from runtender.local.kubernetes.errors import bad_request, conflict, invalid, unsupported
from runtender.local.kubernetes.parts import Parts
from runtender.local.kubernetes.queries import flag
from runtender.local.kubernetes.removal import Propagation
from runtender.local.kubernetes.resources import Resource
from runtender.local.kubernetes.routes import Call
from runtender.local.kubernetes.selectors import selection_of
from runtender.local.kubernetes.writing import found, key_of, precondition

_WARNING = (
    '299 - "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or '
    'set propagationPolicy=Orphan to suppress this warning"'
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteOptions:
    """How an object is to be deleted. None of `propagation` is the kind's own way, "" of a precondition none."""

    propagation: Propagation | None = None
    grace: int | None = None
    uid: str = ""
    version: str = ""
    dry: bool = False

    @classmethod
    def read(cls, call: Call) -> DeleteOptions:
        """Read the options from a call's body and query; raises `StatusError` 400 or 422."""
        body = read_json(call)
        if not isinstance(body, Mapping):
            raise bad_request("the object provided is unrecognized (must be of type DeleteOptions)")
        policy = body.get("propagationPolicy") or call.query.get("propagationPolicy") or ""
        orphans = body.get("orphanDependents")
        if orphans is None and "orphanDependents" in call.query:
            orphans = flag(call.query, "orphanDependents")
        if not policy and orphans is not None:
            policy = Propagation.ORPHAN if orphans else Propagation.BACKGROUND
        if policy and policy not in set(Propagation):
            cause = unsupported("propagationPolicy", policy, Propagation)
            raise invalid(call.resource, call.name, [cause])
        preconditions = body.get("preconditions") or {}
        return cls(
            propagation=Propagation(policy) if policy else None,
            grace=_grace(body.get("gracePeriodSeconds", call.query.get("gracePeriodSeconds"))),
            uid=preconditions.get("uid") or "",
            version=preconditions.get("resourceVersion") or "",
            dry=call.dry or "All" in (body.get("dryRun") or ()),
        )


def delete(parts: Parts, call: Call) -> HttpResponse:
    """Delete an object; raises `StatusError` 404, or 409 when it is not the one that was meant."""
    options = DeleteOptions.read(call)
    document = found(parts, call)
    for what, wanted, present in (
        ("UID", options.uid, uid_of(document)),
        ("ResourceVersion", options.version, metadata_of(document)["resourceVersion"]),
    ):
        if wanted and wanted != present:
            raise conflict(call.resource, call.name, precondition(what, wanted, present))
    headers = {"Warning": _WARNING} if call.resource.plural == "jobs" and not options.propagation else {}
    if not options.dry:
        _begin(parts, key_of(call), options)
    left = parts.cluster.store.get(key_of(call))
    if left is None or uid_of(left) != uid_of(document):
        return json_response(200, _gone(call.resource, document), headers)
    return json_response(200, left, headers)


def delete_collection(parts: Parts, call: Call) -> HttpResponse:
    """Delete every object that the selectors take; returns them as they were."""
    options = DeleteOptions.read(call)
    selection = selection_of(call.resource.plural, call.query)
    taken = [
        document
        for document in parts.cluster.store.each(call.resource.plural, call.namespace)
        if selection.takes(document)
    ]
    listed: list[Any] = []
    for document in taken:
        key = Key(resource=call.resource.plural, namespace=namespace_of(document), name=name_of(document))
        if not options.dry:
            _begin(parts, key, options)
        listed.append(parts.cluster.store.get(key) or document)
    answer = {
        "kind": f"{call.resource.kind}List",
        "apiVersion": call.resource.api_version,
        "metadata": {"resourceVersion": str(parts.cluster.store.version)},
        "items": listed,
    }
    return json_response(200, answer)


def _begin(parts: Parts, key: Key, options: DeleteOptions) -> None:
    # Jobs made before there was garbage collection kept their pods, and still do unless told otherwise.
    usual = Propagation.ORPHAN if key.resource == "jobs" else Propagation.BACKGROUND
    parts.removal.begin(key, options.propagation or usual, options.grace)
    parts.cluster.settle()


def _gone(resource: Resource, document: Document) -> Document:
    details = {
        "name": name_of(document),
        **({"group": resource.group} if resource.group else {}),
        "kind": resource.plural,
        "uid": uid_of(document),
    }
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _grace(value: object) -> int | None:
    if value is None or value == "":
        return None
    try:
        seconds = int(str(value))
    except ValueError as error:
        raise bad_request(f"gracePeriodSeconds: {value!r} is no whole number") from error
    if seconds < 0:
        raise bad_request("gracePeriodSeconds: must be greater than or equal to 0")
    return seconds

"""The calls on objects: which code answers which verb, and how the answer is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runtender.local.http import HttpResponse, json_response
from runtender.local.kubernetes import deleting, pod_calls, writing
from runtender.local.kubernetes.documents import Document, uid_of
from runtender.local.kubernetes.logs import LogRequest
from runtender.local.kubernetes.parts import Parts
from runtender.local.kubernetes.queries import flag
from runtender.local.kubernetes.routes import Call
from runtender.local.kubernetes.streams import LogStream, Stream
from runtender.local.kubernetes.tables import table, wants_table
from runtender.local.kubernetes.watches import Watch


def _get(parts: Parts, call: Call) -> HttpResponse:
    document = writing.found(parts, call)
    return json_response(200, _shown(parts, call)(document))


def _list(parts: Parts, call: Call) -> HttpResponse:
    page = parts.lists.page(call.resource, call.namespace, call.query)
    if not wants_table(call.request.headers.get("Accept", "")):
        return json_response(200, page)
    shown = table(
        call.resource.plural, page["items"], parts.cluster.now, version=page["metadata"]["resourceVersion"]
    )
    return json_response(200, {**shown, "metadata": page["metadata"]})


def _watch(parts: Parts, call: Call) -> Stream:
    return Watch.open(call, parts.cluster, _shown(parts, call))


def _log(parts: Parts, call: Call) -> HttpResponse | Stream:
    if flag(call.query, "follow"):
        pod = writing.found(parts, call)
        pod_calls.check_log(parts, call, pod)
        wanted = LogRequest.read(call.query, parts.cluster.now)
        return LogStream(parts, writing.key_of(call), uid_of(pod), wanted)
    return pod_calls.log(parts, call)


def _shown(parts: Parts, call: Call) -> Callable[[Document], Mapping[str, object]]:
    """Return how the client wants to see an object."""
    if not wants_table(call.request.headers.get("Accept", "")):
        return lambda document: document
    return lambda document: table(
        call.resource.plural, [document], parts.cluster.now, version=document["metadata"]["resourceVersion"]
    )


Method = Callable[[Parts, Call], HttpResponse | Stream]

METHODS: Mapping[tuple[str, str], Method] = {
    ("", "get"): _get,
    ("", "list"): _list,
    ("", "watch"): _watch,
    ("", "create"): writing.create,
    ("", "update"): writing.update,
    ("", "patch"): writing.patch,
    ("", "delete"): deleting.delete,
    ("", "deletecollection"): deleting.delete_collection,
    ("status", "get"): _get,
    ("status", "update"): writing.update,
    ("status", "patch"): writing.patch,
    ("log", "get"): _log,
    ("eviction", "create"): pod_calls.evict,
}
"""The methods by the part of the object that they are about, and the verb."""

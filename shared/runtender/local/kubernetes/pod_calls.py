"""Calls on parts of a pod: its log, and its eviction."""

from __future__ import annotations

from runtender.local.http import HttpResponse, json_response
from runtender.local.kubernetes.bodies import read_json
from runtender.local.kubernetes.documents import Document, uid_of
from runtender.local.kubernetes.errors import bad_request, internal_error
from runtender.local.kubernetes.logs import LogRequest
from runtender.local.kubernetes.parts import Parts
from runtender.local.kubernetes.pods import grace_s, node_of
from runtender.local.kubernetes.routes import Call
from runtender.local.kubernetes.writing import found, key_of


def log(parts: Parts, call: Call) -> HttpResponse:
    """Return a pod's log as plain text; raises `StatusError` 400 where there can be none yet."""
    pod = found(parts, call)
    check_log(parts, call, pod)
    wanted = LogRequest.read(call.query, parts.cluster.now)
    text = parts.kubelet.logs.read(uid_of(pod), parts.kubelet.restart_of(uid_of(pod)), wanted)
    return HttpResponse(status=200, headers={"Content-Type": "text/plain"}, body=text)


def check_log(parts: Parts, call: Call, pod: Document) -> None:
    """Raise `StatusError` where a pod can have no log: it waits, its node is silent, or there is no such container."""
    name = pod["metadata"]["name"]
    names = [container["name"] for container in pod["spec"]["containers"]]
    container = call.query.get("container") or names[0]
    if container not in names:
        raise bad_request(f"container {container} is not valid for pod {name}")
    if not call.query.get("container") and len(names) > 1:
        raise bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
        )
    if not node_of(pod):
        raise bad_request(f"pod {name} does not have a host assigned")
    if node_of(pod) in parts.nodes.lost:
        message = f'Get "https://{node_of(pod)}:10250/containerLogs": dial tcp: i/o timeout'
        raise internal_error(message)
    for status in pod["status"].get("containerStatuses") or ():
        waiting = status["state"].get("waiting")
        if status["name"] == container and waiting and not status["lastState"]:
            raise bad_request(
                f'container "{container}" in pod "{name}" is waiting to start: {waiting["reason"]}'
            )


def evict(parts: Parts, call: Call) -> HttpResponse:
    """Let a pod go as a drain of its node does."""
    pod = found(parts, call)
    options = read_json(call).get("deleteOptions") or {}
    grace = options.get("gracePeriodSeconds")
    parts.disruptions.evict_by_api(key_of(call), grace_s(pod) if grace is None else int(grace))
    parts.cluster.settle()
    return json_response(
        201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    )

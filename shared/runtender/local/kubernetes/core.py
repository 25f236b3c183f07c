"""The simulated Kubernetes API of one cluster: requests in, answers out, and events for whoever runs the pods.

It has no transport and no clock. `handle` answers one request at a moment that the caller names, `advance` lets the time
between pass and returns what is to be done about pods; a served cluster drives it with real time, a simulation with its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from datetime import datetime

from runtender.local.http import Faults, HttpRequest, HttpResponse, no_faults
from runtender.local.kubernetes import discovery
from runtender.local.kubernetes.documents import Document, Key, name_of, namespace_of, uid_of
from runtender.local.kubernetes.errors import StatusError
from runtender.local.kubernetes.events import Event
from runtender.local.kubernetes.methods import METHODS
from runtender.local.kubernetes.nodes import NodePool
from runtender.local.kubernetes.parts import Parts
from runtender.local.kubernetes.routes import Call, ServerCall, find_call
from runtender.local.kubernetes.schema import Schemas
from runtender.local.kubernetes.streams import Stream
from runtender.local.kubernetes.timings import Timings

NEWEST_MINOR = 34
"""The version 1.x whose behaviour is simulated in full."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Leftovers:
    """What is still there, as `namespace/name`. Nothing here means that a run has cleaned up."""

    jobs: tuple[str, ...]
    pods: tuple[str, ...]
    services: tuple[str, ...]
    deployments: tuple[str, ...]


class KubernetesCore:
    """One cluster's Kubernetes. Not safe for threads: whoever serves it lets one caller in at a time.

    `born` is when the cluster was made. Tokens are not looked at: whoever reaches the port may do everything.
    """

    def __init__(
        self,
        *,
        born: datetime,
        name: str = "standing",
        zone: str = "us-central1-a",
        minor: int = NEWEST_MINOR,
        pools: Iterable[NodePool] = (NodePool(),),
        timings: Timings | None = None,
        schemas: Schemas | None = None,
        faults: Faults = no_faults,
    ) -> None:
        self._parts = Parts(
            name=name,
            zone=zone,
            minor=minor,
            pools=pools,
            timings=timings or Timings(),
            schemas=schemas,
            born=born,
        )
        self._cluster = self._parts.cluster
        self._faults = faults
        self._counts: Counter[str] = Counter()

    def handle(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer one request as Kubernetes would at `now`. A watch is answered with what there is, and ends."""
        opened = self.open(request, now)
        if isinstance(opened, HttpResponse):
            return opened
        return HttpResponse(status=200, headers=opened.headers, body=opened.poll())

    def open(self, request: HttpRequest, now: datetime) -> HttpResponse | Stream:
        """Answer one request like `handle`, but return a watch, or a log that is followed, as the stream it is."""
        self._cluster.run(now)
        try:
            call = find_call(request)
        except StatusError as error:
            return error.response
        self._counts[call.method_id] += 1
        fault = self._faults(call.method_id, request)
        if fault is None:
            return self._answer(call)
        if fault.applied:
            self._answer(call)
        return fault.answer

    def poll(self, stream: Stream, now: datetime) -> bytes:
        """Return what is new on a stream at `now`."""
        self._cluster.run(now)
        return stream.poll()

    def apply(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer one request that no client sent: uncounted, and undisturbed by faults."""
        self._cluster.run(now)
        try:
            answered = self._answer(find_call(request))
        except StatusError as error:
            return error.response
        return answered if isinstance(answered, HttpResponse) else HttpResponse(status=200)

    def advance(self, now: datetime) -> tuple[Event, ...]:
        """Let everything due at `now` happen; return all events since the last call, also those of requests."""
        self._cluster.run(now)
        return self._cluster.drain()

    def next_due(self) -> datetime | None:
        """Return when something will happen by itself; None when nothing will."""
        return self._cluster.next_due()

    def pod_started(self, uid: str, now: datetime, restart: int = 0) -> None:
        """Learn that a pod's container runs."""
        self._report(now, lambda: self._parts.kubelet.pod_started(uid, restart))

    def pod_log(self, uid: str, chunk: bytes, now: datetime) -> None:
        """Learn what a pod's container printed."""
        self._report(now, lambda: self._parts.kubelet.pod_log(uid, chunk))

    def pod_exited(
        self, uid: str, exit_code: int, now: datetime, *, restart: int = 0, oom: bool = False
    ) -> None:
        """Learn that a pod's container has ended."""
        self._report(now, lambda: self._parts.kubelet.pod_exited(uid, exit_code, restart, oom=oom))

    def evict(self, namespace: str, name: str, now: datetime) -> bool:
        """Let a node that is short of memory end a pod; False when there is no such pod at work."""
        return self._strike(now, lambda: self._parts.disruptions.evict(_pod(namespace, name)))

    def preempt(self, namespace: str, name: str, now: datetime) -> bool:
        """Let a pod make room for one that matters more; False when there is no such pod at work."""
        return self._strike(now, lambda: self._parts.disruptions.preempt(_pod(namespace, name)))

    def take_node(self, name: str, now: datetime) -> bool:
        """Take a Spot node away with a warning; False when there is none."""
        return self._strike(now, lambda: self._parts.disruptions.take_node(name))

    def lose_node(self, name: str, now: datetime) -> bool:
        """Let the machine of a node be gone without a word; False when there is none."""
        return self._strike(now, lambda: self._parts.disruptions.lose_node(name))

    def add_node(self, pool: str, now: datetime) -> str:
        """Let one more node of a pool join at once; returns its name."""
        self._cluster.run(now)
        node = self._parts.nodes.add(self._parts.nodes.pools[pool])
        self._cluster.settle()
        return name_of(node)

    def miss_image(self, image: str) -> None:
        """Let an image be in no registry from now on."""
        self._parts.missing.add(image)

    def find_image(self, image: str) -> None:
        """Let an image be there again."""
        self._parts.missing.discard(image)

    def counts(self) -> dict[str, int]:
        """Return how often each method was called."""
        return dict(self._counts)

    def documents(self, resource: str, namespace: str = "") -> tuple[Document, ...]:
        """Return the objects of a resource as they are, to be read."""
        self._cluster.settle()
        return tuple(self._cluster.store.each(resource, namespace))

    def leftovers(self, apart_from: Container[str] = ()) -> Leftovers:
        """Return what is still there, apart from objects of these UIDs. Pods that have ended count too."""
        self._cluster.settle()
        found = {
            resource: tuple(
                f"{namespace_of(document)}/{name_of(document)}"
                for document in self._cluster.store.each(resource)
                if uid_of(document) not in apart_from
            )
            for resource in ("jobs", "pods", "services", "deployments")
        }
        return Leftovers(**found)

    def _answer(self, call: Call | ServerCall) -> HttpResponse | Stream:
        try:
            if isinstance(call, ServerCall):
                return discovery.answer(call.about, call.request, self._cluster.minor)
            return METHODS[call.subresource, call.verb](self._parts, call)
        except StatusError as error:
            return error.response

    def _report(self, now: datetime, learn: Callable[[], None]) -> None:
        """Take a report in. What controllers make of it waits for time to pass or a call: many cost no more than one."""
        if now > self._cluster.now:
            self._cluster.run(now)
        learn()

    def _strike(self, now: datetime, blow: Callable[[], bool]) -> bool:
        self._cluster.run(now)
        hit = blow()
        self._cluster.settle()
        return hit


def _pod(namespace: str, name: str) -> Key:
    return Key(resource="pods", namespace=namespace, name=name)

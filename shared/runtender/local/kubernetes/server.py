"""A simulated cluster on real time: its API served over HTTPS, with a thread that lets its time pass.

It has two addresses, as a GKE cluster has: the IP endpoint, whose certificate the cluster's own authority signed, and the DNS
endpoint, whose certificate another root signed.

with KubernetesServer(core, own=own_authority, public=public_authority) as server:
    runner = PodRunner(reports=server, ...)
    server.run(runner.apply)
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType
from typing import Any

from runtender.local.http import HttpRequest, HttpResponse, LocalAuthority, utc_now
from runtender.local.kubernetes.core import KubernetesCore, Leftovers
from runtender.local.kubernetes.events import Event
from runtender.local.kubernetes.streams import Stream
from runtender.local.kubernetes.transport import StreamingServer
from runtender.local.pulse import Pulse


class KubernetesServer(AbstractContextManager["KubernetesServer"]):
    """A served core. `endpoint` and `dns_endpoint` are host and port, as the GKE API tells them.

    It takes the reports of a runner of pods (`events.PodReports`).
    """

    def __init__(
        self,
        core: KubernetesCore,
        *,
        own: LocalAuthority,
        public: LocalAuthority,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._core = core
        self._now = now
        self._pulse = Pulse(core, now)
        self._by_address = StreamingServer(self._open, self._poll, own)
        self._by_name = StreamingServer(self._open, self._poll, public)
        self.endpoint = f"127.0.0.1:{self._by_address.port}"
        self.dns_endpoint = f"localhost:{self._by_name.port}"

    def run(self, apply: Callable[[Event], None]) -> None:
        """Let time pass from now on, and hand every event to `apply`, in order, from one thread."""
        self._pulse.run(apply)

    def apply(self, request: HttpRequest) -> HttpResponse:
        """Answer one request of this process: uncounted, and undisturbed by faults."""
        with self._pulse:
            return self._core.apply(request, self._now())

    def pod_started(self, uid: str, restart: int = 0) -> None:
        """Learn that a pod's container runs."""
        with self._pulse:
            self._core.pod_started(uid, self._now(), restart)

    def pod_log(self, uid: str, chunk: bytes) -> None:
        """Learn what a pod's container printed."""
        with self._pulse:
            self._core.pod_log(uid, chunk, self._now())

    def pod_exited(self, uid: str, exit_code: int, *, restart: int = 0, oom: bool = False) -> None:
        """Learn that a pod's container has ended."""
        with self._pulse:
            self._core.pod_exited(uid, exit_code, self._now(), restart=restart, oom=oom)

    def evict(self, namespace: str, name: str) -> bool:
        """Let a node that is short of memory end a pod; False when there is no such pod at work."""
        with self._pulse:
            return self._core.evict(namespace, name, self._now())

    def preempt(self, namespace: str, name: str) -> bool:
        """Let a pod make room for one that matters more; False when there is no such pod at work."""
        with self._pulse:
            return self._core.preempt(namespace, name, self._now())

    def take_node(self, name: str) -> bool:
        """Take a Spot node away with a warning; False when there is none."""
        with self._pulse:
            return self._core.take_node(name, self._now())

    def lose_node(self, name: str) -> bool:
        """Let the machine of a node be gone without a word; False when there is none."""
        with self._pulse:
            return self._core.lose_node(name, self._now())

    def add_node(self, pool: str) -> str:
        """Let one more node of a pool join at once; returns its name."""
        with self._pulse:
            return self._core.add_node(pool, self._now())

    def miss_image(self, image: str) -> None:
        """Let an image be in no registry from now on."""
        with self._pulse:
            self._core.miss_image(image)

    def find_image(self, image: str) -> None:
        """Let an image be there again."""
        with self._pulse:
            self._core.find_image(image)

    def documents(self, resource: str, namespace: str = "") -> tuple[Mapping[str, Any], ...]:
        """Return the objects of a resource as they are, to be read."""
        with self._pulse.gate:
            return self._core.documents(resource, namespace)

    def counts(self) -> dict[str, int]:
        """Return the calls so far by API method."""
        with self._pulse.gate:
            return self._core.counts()

    def leftovers(self, apart_from: Container[str] = ()) -> Leftovers:
        """Return what is still there, apart from objects of these UIDs."""
        with self._pulse.gate:
            return self._core.leftovers(apart_from)

    def close(self) -> None:
        """Let no more time pass and stop answering. Pods that run are the runner's to end."""
        self._pulse.close()
        self._by_address.close()
        self._by_name.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, request: HttpRequest) -> HttpResponse | Stream:
        with self._pulse:
            return self._core.open(request, self._now())

    def _poll(self, stream: Stream) -> bytes:
        with self._pulse.gate:
            return self._core.poll(stream, self._now())

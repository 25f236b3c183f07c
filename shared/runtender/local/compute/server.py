"""The simulated Compute Engine on real time: served over HTTP and HTTPS, with a thread that lets its time pass.

with ComputeServer(core, authority) as server:
    runner = VmRunner(root=..., network=Network(compute_tls_port=server.secure.port, ...), reports=server)
    server.run(runner.apply)
"""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType

from runtender.local.compute.core import ComputeCore, Leftovers
from runtender.local.compute.events import Event
from runtender.local.compute.instances import Instance
from runtender.local.http import HttpRequest, HttpResponse, LocalAuthority, on_clock, serve, utc_now
from runtender.local.pulse import Pulse


class ComputeServer(AbstractContextManager["ComputeServer"]):
    """A served core. `url` is the address without the API's path; `tls_port` answers as compute.googleapis.com."""

    def __init__(
        self,
        core: ComputeCore,
        *,
        authority: LocalAuthority,
        port: int = 0,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._core = core
        self._now = now
        self._pulse = Pulse(core, now)
        handler = on_clock(core.handle, now, self._pulse)
        self._plain = serve(handler, port=port)
        self._tls = serve(handler, tls=authority)
        self.url = self._plain.url
        self.port = self._plain.port
        self.tls_port = self._tls.port

    def run(self, apply: Callable[[Event], None]) -> None:
        """Let time pass from now on, and hand every event to `apply`, in order, from one thread."""
        self._pulse.run(apply)

    def apply(self, request: HttpRequest) -> HttpResponse:
        """Answer one request of this process: uncounted, and undisturbed by faults."""
        with self._pulse:
            return self._core.apply(request, self._now())

    def print_serial(self, instance_id: str, chunk: bytes) -> None:
        """Print on a machine's console."""
        with self._pulse:
            self._core.print_serial(instance_id, chunk)

    def guest_off(self, instance_id: str, boot: int) -> None:
        """Learn that a machine is off that came up as `boot`."""
        with self._pulse:
            self._core.guest_off(instance_id, boot, self._now())

    def preempt(self, zone: str, name: str) -> bool:
        """Preempt a running machine; False when there is none."""
        with self._pulse:
            return self._core.preempt(zone, name, self._now())

    def host_error(self, zone: str, name: str) -> bool:
        """Let the host of a running machine fail; False when there is none."""
        with self._pulse:
            return self._core.host_error(zone, name, self._now())

    def lose(self, zone: str, name: str) -> bool:
        """Let a running machine vanish without a record of it; False when there is none."""
        with self._pulse:
            return self._core.lose(zone, name, self._now())

    def machines(self) -> tuple[Instance, ...]:
        """Return the machines that are there."""
        with self._pulse.gate:
            return self._core.machines()

    def inserted(self) -> tuple[str, ...]:
        """Return the ids of all machines whose insert was ever accepted, in order."""
        with self._pulse.gate:
            return self._core.inserted()

    def counts(self) -> dict[str, int]:
        """Return the calls so far by API method."""
        with self._pulse.gate:
            return self._core.counts()

    def leftovers(self, apart_from: Container[str] = ()) -> Leftovers:
        """Return what is still there, apart from machines of these ids and their disks."""
        with self._pulse.gate:
            return self._core.leftovers(apart_from)

    def close(self) -> None:
        """Let no more time pass and stop answering. Machines that run are the runner's to end."""
        self._pulse.close()
        self._plain.close()
        self._tls.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""The simulated services in a process of their own, behind real sockets, on the time that each request tells.

So that what a measured process does is apart from what the services do, and no measurement waits for a machine to boot. A
request's `World` header holds the number of a world and its time: each number has its own services, and the newest two are
kept. A request without it is of the one world that is on real time, where machines come and go in a moment and there are plenty.
Prints its address, and ends when standard input does.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import requests
from tests.bench.world import BUCKETS, SETTINGS

from runtender.local.compute.core import ComputeCore
from runtender.local.compute.events import Stopping
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.timings import Timings
from runtender.local.http import HttpRequest, HttpResponse, serve, utc_now
from runtender.local.objects.core import ObjectsCore
from runtender.local.topics import TopicsCore, plane_topics
from runtender.local.topics.rest import TopicsApi
from runtender.ports import Clock
from runtender.settings import Settings

_ROOT = Path(__file__).parents[2]
_HEADER = "World"
_FIRST_BOOT = 1
_KEPT = 2
_HASTE = 1000.0
_PLENTY = 1e9


class Services:
    """One world's Compute Engine, Cloud Storage and Pub/Sub. Its machines do nothing but go down when they are told to."""

    def __init__(self, now: datetime, *, told: bool) -> None:
        settings = Settings.from_env(SETTINGS)
        timings, quotas = Timings(), Quotas()
        if not told:
            timings = timings.scaled(_HASTE)
            quotas = Quotas(regional=dict.fromkeys(quotas.regional, _PLENTY))
        self._compute = ComputeCore(project=settings.project, timings=timings, quotas=quotas)
        self._objects = ObjectsCore()
        for bucket in BUCKETS:
            self._objects.make_bucket(bucket, now)
        topics = TopicsCore(project=settings.project, topics=plane_topics(settings), subscriptions=())
        self._topics = TopicsApi(topics)

    def handle(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer one call of whichever service."""
        if request.path.startswith("/v1/"):
            return self._topics.handle(request, now)
        if not request.path.startswith("/compute/"):
            return self._objects.handle(request, now)
        self._let_time_pass(now)
        return self._compute.handle(request, now)

    def _let_time_pass(self, now: datetime) -> None:
        for event in self._compute.advance(now):
            if isinstance(event, Stopping):
                self._compute.guest_off(event.instance_id, _FIRST_BOOT, now)


class Worlds:
    """Services by the number of their world."""

    def __init__(self) -> None:
        self._worlds: dict[str, Services] = {}
        self._gate = threading.Lock()

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Answer a request in its own world, at its own time."""
        number, _, moment = request.headers.get(_HEADER, "").partition(" ")
        now = datetime.fromisoformat(moment) if moment else utc_now()
        with self._gate:
            if number not in self._worlds:
                self._worlds[number] = Services(now, told=bool(moment))
                for old in list(self._worlds)[:-_KEPT]:
                    del self._worlds[old]
            return self._worlds[number].handle(request, now)


class ToldSession(requests.Session):
    """A session whose requests tell the time of `clock`, in the world `number`."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.trust_env = False
        self.number = 0
        self.clock = clock

    def request(  # type: ignore[override]  # everything but the headers is passed on
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> requests.Response:
        told = {**(headers or {}), _HEADER: f"{self.number} {self.clock.now().isoformat()}"}
        return super().request(method, url, headers=told, **options)


@contextmanager
def services() -> Iterator[str]:
    """Start the services; yield their address."""
    command = [sys.executable, "-m", "tests.bench.served"]
    with subprocess.Popen(
        command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield child.stdout.readline().strip()
        finally:
            child.stdin.close()


def main() -> None:
    """Serve until standard input ends."""
    with serve(Worlds().handle) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()

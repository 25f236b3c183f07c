"""The services around the plane, with their weather, machines, pods and the onlooker, as one thing in which time passes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from random import Random

from runtender.engine.budget import COUNTERS
from runtender.local.compute.agenda import Agenda
from runtender.local.compute.events import Booted
from runtender.local.compute.instances import Instance
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.stock import Stock
from runtender.local.http import Fault, HttpRequest, HttpResponse
from runtender.local.objects import Notification, ObjectsCore
from runtender.local.simulation.clock import SimClock
from runtender.local.simulation.clusters import ClusterSetup, StandingCluster
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.rules import Onlooker
from runtender.local.simulation.session import CoreSession
from runtender.local.simulation.store import WeatheredStore
from runtender.local.simulation.weather import Mishap, Weather
from runtender.local.simulation.zones import WORKER, Zones
from runtender.local.store import MemoryStore
from runtender.local.topics import TopicsCore, plane_subscriptions, plane_topics
from runtender.model import Job, Run
from runtender.ports import Store
from runtender.settings import Settings
from runtender.wire.documents import job_from_document, job_path, run_from_document, run_path
from runtender.worker.layout import summary_object

START = datetime(2026, 1, 1, tzinfo=UTC)
STORAGE, COMPUTE = "http://storage", "http://compute"
WAREHOUSE = "wh"


class Cloud:
    """Store, topics, objects, Compute Engine and its machines, and where a world has one a cluster with its pods.

    Nothing happens in it unless time passes or somebody calls. `partial_fleets` are the fleet lists of which whoever calls
    now was last shown a part; `pending` counts calls that are still to take effect.
    """

    def __init__(
        self,
        settings: Settings,
        weather: Weather,
        chance: Random,
        behaviour: Callable[[Booted], Behaviour],
        *,
        store: Store | None = None,
        stock: Stock | None = None,
        quotas: Quotas | None = None,
        cluster: ClusterSetup | None = None,
    ) -> None:
        self.settings = settings
        self.weather = weather
        self.clock = SimClock(START, chance, self.pass_time)
        self.agenda = Agenda()
        self.partial_fleets: set[str] = set()
        self.pending = 0
        self.log: list[tuple[datetime, str]] = []
        self.documents = store or MemoryStore()
        self.onlooker = Onlooker(view=self)
        self.store = WeatheredStore(self.documents, weather, self.onlooker.committed)
        self.topics = TopicsCore(
            project=settings.project,
            topics=plane_topics(settings),
            subscriptions=plane_subscriptions(settings, "http://functions"),
            arrivals=weather.arrivals,
        )
        self.objects = ObjectsCore(on_finalize=self._finalized, faults=self._storage_fault)
        self.zones = Zones(self, behaviour, stock=stock, quotas=quotas)
        self._cluster = StandingCluster(cluster, self) if cluster else None
        self._platforms = (self.zones, self._cluster) if self._cluster else (self.zones,)
        hosts = self._cluster.hosts if self._cluster else {}
        hosts.update(storage=self.objects.handle, compute=self.zones.handle)
        self.session = CoreSession(hosts, self.clock.true_time)
        self._undisturbed = False
        self._make_buckets()

    @property
    def cluster(self) -> StandingCluster:
        """The world's cluster; LookupError in a world that has none."""
        if self._cluster is None:
            raise LookupError("this world has no cluster")
        return self._cluster

    # --- time

    def pass_time(self, span: timedelta, *, until_due: bool = False) -> None:
        """Let time pass, and happen what has to; with `until_due` no further than to the next event to be delivered."""
        end = self.clock.time + span
        self._happen()
        while (due := self._next_due()) is not None and due <= end:
            if until_due and self._has_due_events():
                return
            self.clock.time = max(self.clock.time, due)
            self._happen()
        if not (until_due and self._has_due_events()):
            self.clock.time = max(self.clock.time, end)

    def _next_due(self) -> datetime | None:
        moments = (self.agenda.next_due(), *(platform.next_due() for platform in self._platforms))
        return min((moment for moment in moments if moment is not None), default=None)

    def _has_due_events(self) -> bool:
        change = self.topics.next_change()
        return change is not None and change <= self.clock.time

    def _happen(self) -> None:
        """Carry out everything that is due now, at machines, at pods and elsewhere."""
        self._tell_workers()
        self.agenda.run(self.clock.time)
        self._tell_workers()
        self.onlooker.check_workers()

    def _tell_workers(self) -> None:
        for platform in self._platforms:
            platform.happen(self.clock.time)

    # --- what machines and pods reach (outside.Outside)

    def request(self, machine: str, method: str, url: str, body: bytes = b"") -> HttpResponse:
        headers = {"Authorization": f"{WORKER}{machine}", "Content-Type": "application/json"}
        asked = HttpRequest.to_url(method, url, headers=headers, body=body)
        core = self.zones.handle if url.startswith("/compute/") else self.objects.handle
        return core(asked, self.clock.time)

    def epoch(self) -> int:
        return int(self.clock.time.timestamp())

    def note(self, what: str) -> None:
        self.log.append((self.clock.time, what))

    def fault(self, method: str, request: HttpRequest, *, by_worker: bool) -> Fault | None:
        mishap = self.weather.call(method, request, of_worker=by_worker)
        if mishap is None:
            return None
        self.note(f"    {method} by {'worker' if by_worker else 'plane'}: {mishap}")
        if mishap.late:
            self._apply_late(request, mishap)
        return Fault(answer=mishap.answer, applied=mishap.applied and not mishap.late)

    # --- what the onlooker sees (rules.View)

    def time(self) -> datetime:
        return self.clock.time

    def standing(self, nonce: str) -> list[str]:
        return list(chain.from_iterable(platform.standing(nonce) for platform in self._platforms))

    def workers(self) -> Iterable[tuple[str, str, bool]]:
        return chain.from_iterable(platform.workers() for platform in self._platforms)

    def has_job(self, uid: str) -> bool:
        return self._cluster is not None and self._cluster.has_job(uid)

    def job(self, job_key: str) -> Job | None:
        """Read a job as it is saved."""
        snapshot = self.documents.get(job_path(job_key))
        return None if snapshot is None else job_from_document(snapshot.data)

    def run(self, run_id: str) -> Run | None:
        """Read a run header as it is saved."""
        snapshot = self.documents.get(run_path(run_id))
        return None if snapshot is None else run_from_document(snapshot.data)

    def summaries(self, job: Job, nonce: str) -> Mapping[int, bytes]:
        bucket, _, folder = job.plan.cells_uri.removeprefix("gs://").partition("/")
        found = {
            rank: self.read_object(bucket, f"{folder}/{nonce}/{summary_object(rank)}")
            for rank in range(job.plan.worker_count)
        }
        return {rank: body for rank, body in found.items() if body is not None}

    def creates_granted(self) -> int:
        """Count the creates that the minutes' counters had room for."""
        counters = self.documents.find("budget", limit=sys.maxsize)
        return sum(min(found.data.get("n", 0), self._share(found.path)) for found in counters)

    def _share(self, path: str) -> int:
        whole, rest = divmod(self.settings.api_budget, COUNTERS)
        return whole + (int(path.rpartition("-")[2]) < rest)

    # --- what a test or a story does to it, or sees of it

    def machines(self) -> tuple[Instance, ...]:
        """Return the machines that are there, whosever they are."""
        return self.zones.core.machines()

    def read_object(self, bucket: str, name: str) -> bytes | None:
        """Read an object, whatever the weather."""
        path = f"/storage/v1/b/{bucket}/o/{name.replace('/', '%2F')}"
        answer = self._quietly(HttpRequest(method="GET", path=path, query={"alt": "media"}))
        return answer.body if answer.status == 200 else None

    def write_object(self, bucket: str, name: str, body: bytes) -> None:
        """Write an object over whatever is there, whatever the weather."""
        self._quietly(
            HttpRequest(
                method="POST",
                path=f"/upload/storage/v1/b/{bucket}/o",
                query={"uploadType": "media", "name": name},
                headers={"Content-Type": "application/json"},
                body=body,
            )
        )

    def leftovers(self) -> Mapping[str, tuple[str, ...]]:
        """Return what is there of ours, by kind."""
        return {kind: names for platform in self._platforms for kind, names in platform.leftovers().items()}

    def check_strangers(self) -> None:
        """Check that what somebody else has made is untouched."""
        for platform in self._platforms:
            platform.check_strangers()

    def calm(self) -> None:
        """End all trouble."""
        self.weather.calm()
        for platform in self._platforms:
            platform.calm()

    # --- weather

    def _storage_fault(self, method: str, request: HttpRequest) -> Fault | None:
        if self._undisturbed:
            return None
        by_worker = request.headers.get("Authorization", "").startswith(WORKER)
        return self.fault(method, request, by_worker=by_worker)

    def _apply_late(self, request: HttpRequest, mishap: Mishap) -> None:
        self.pending += 1

        def apply(_at: datetime) -> None:
            self.pending -= 1
            self._quietly(request)

        self.agenda.at(self.clock.time + mishap.late, apply)

    def _quietly(self, request: HttpRequest) -> HttpResponse:
        """Carry a request out undisturbed by any weather, and unwatched."""
        if request.path.startswith("/compute/"):
            return self.zones.apply(request)
        if request.path.startswith(("/api/", "/apis/")):
            return self.cluster.core.apply(request, self.clock.time)
        before, self._undisturbed = self._undisturbed, True
        try:
            return self.objects.handle(request, self.clock.time)
        finally:
            self._undisturbed = before

    def _finalized(self, topic: str, body: bytes, attributes: Mapping[str, str], now: datetime) -> None:
        name = attributes["objectId"]
        self.onlooker.stored(name, lambda: self.read_object(attributes["bucketId"], name) or b"")
        self.topics.publish(topic, body, attributes, now)

    def _make_buckets(self) -> None:
        notice = Notification(topic=self.settings.marker_topic, prefix="runs/status/")
        self.objects.make_bucket(self.settings.status_bucket, START, [notice])
        for bucket in {self.settings.code_bucket, WAREHOUSE} - {self.settings.status_bucket}:
            self.objects.make_bucket(bucket, START)

"""The services around the plane, with their weather, their machines and the onlooker, as one thing in which time passes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random

from runtender.engine.budget import COUNTERS
from runtender.local.compute.agenda import Agenda
from runtender.local.compute.events import Booted, Event
from runtender.local.compute.instances import Instance
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.stock import Stock
from runtender.local.http import Fault, HttpRequest, HttpResponse
from runtender.local.objects import Notification, ObjectsCore
from runtender.local.scenario.strangers import stranger_insert
from runtender.local.simulation.clock import SimClock
from runtender.local.simulation.compute import OpenCompute
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.machines import Machines
from runtender.local.simulation.rules import Onlooker
from runtender.local.simulation.session import CoreSession
from runtender.local.simulation.store import WeatheredStore
from runtender.local.simulation.weather import INSERT, Mishap, Weather
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
STRANGER = "stranger"
_WORKER = "Bearer local-worker-"


class Cloud:
    """Store, topics, objects, Compute Engine and its machines. Nothing happens in it unless time passes or somebody calls.

    `fleet_is_whole` says whether whoever calls now was shown whole fleet lists only; `pending` counts calls that are still
    to take effect.
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
    ) -> None:
        self.settings = settings
        self.weather = weather
        self.clock = SimClock(START, chance, self.pass_time)
        self.agenda = Agenda()
        self.fleet_is_whole = True
        self.pending = 0
        self.strangers: set[str] = set()
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
        self.compute = OpenCompute(
            project=settings.project, stock=stock, quotas=quotas, faults=self._compute_fault
        )
        self.machines_run = Machines(self.agenda, self, behaviour)
        self.session = CoreSession(
            {"storage": self.objects.handle, "compute": self._compute}, self.clock.true_time
        )
        self.log: list[tuple[datetime, str]] = []
        self._undisturbed = False
        self._numbers = count()
        self._make_buckets()

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
        moments = (self.agenda.next_due(), self.compute.next_due())
        return min((moment for moment in moments if moment is not None), default=None)

    def _has_due_events(self) -> bool:
        change = self.topics.next_change()
        return change is not None and change <= self.clock.time

    def _happen(self) -> None:
        """Carry out everything that is due now, at machines and elsewhere."""
        self._tell_machines()
        self.agenda.run(self.clock.time)
        self._tell_machines()
        self.onlooker.check_machines()

    def _tell_machines(self) -> None:
        # What a machine does on hearing of one event may bring about the next.
        while events := self.compute.advance(self.clock.time):
            for event in events:
                self._tell(event)

    def _tell(self, event: Event) -> None:
        self.note(f"machine {event.instance_id[-3:]}: {type(event).__name__}")
        if isinstance(event, Booted) and "startup-script" not in event.metadata:
            self.strangers.add(event.instance_id)
        else:
            self.machines_run.tell(event, self.clock.time)

    # --- what machines reach (guests.Surroundings)

    def request(self, machine: str, method: str, url: str, body: bytes = b"") -> HttpResponse:
        headers = {"Authorization": f"{_WORKER}{machine}", "Content-Type": "application/json"}
        asked = HttpRequest.to_url(method, url, headers=headers, body=body)
        core = self._compute if url.startswith("/compute/") else self.objects.handle
        return core(asked, self.clock.time)

    def print_serial(self, instance_id: str, line: bytes) -> None:
        self.compute.print_serial(instance_id, line)

    def power_off(self, instance_id: str, boot: int) -> None:
        self.compute.guest_off(instance_id, boot, self.clock.time)

    def epoch(self) -> int:
        return int(self.clock.time.timestamp())

    # --- what the onlooker sees (rules.View)

    def time(self) -> datetime:
        return self.clock.time

    def machines(self) -> tuple[Instance, ...]:
        return self.compute.machines()

    def job(self, job_key: str) -> Job | None:
        """Read a job as it is saved."""
        snapshot = self.documents.get(job_path(job_key))
        return None if snapshot is None else job_from_document(snapshot.data)

    def run(self, run_id: str) -> Run | None:
        """Read a run header as it is saved."""
        snapshot = self.documents.get(run_path(run_id))
        return None if snapshot is None else run_from_document(snapshot.data)

    def summary(self, job: Job, nonce: str) -> bytes | None:
        bucket, _, folder = job.plan.cells_uri.removeprefix("gs://").partition("/")
        return self.read_object(bucket, f"{folder}/{nonce}/{summary_object(0)}")

    def creates_granted(self) -> int:
        """Count the creates that the minutes' counters had room for."""
        counters = self.documents.find("budget", limit=sys.maxsize)
        return sum(min(found.data.get("n", 0), self._share(found.path)) for found in counters)

    def _share(self, path: str) -> int:
        whole, rest = divmod(self.settings.api_budget, COUNTERS)
        return whole + (int(path.rpartition("-")[2]) < rest)

    # --- what a test or a story does to it

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

    def place_stranger(self, zone: str, name: str) -> None:
        """Let somebody else have a machine of this name."""
        disk = f"{STRANGER}-{next(self._numbers)}"
        self._quietly(stranger_insert(self.settings.project, zone, name, disk=disk))

    def delete_by_hand(self, machine: Instance) -> None:
        """Let a person delete a machine."""
        order = machine.order
        path = f"/compute/v1/projects/{order.project}/zones/{order.zone}/instances/{order.name}"
        self._quietly(HttpRequest(method="DELETE", path=path))

    def leftovers(self) -> Mapping[str, tuple[str, ...]]:
        """Return what is there of ours, by kind."""
        left = self.compute.leftovers()
        ours = tuple(one.order.name for one in self.machines() if one.order.labels)
        disks = tuple(name for name in left.disks if not name.startswith(STRANGER))
        return {"instances": ours, "disks": disks, "operations": left.operations}

    def note(self, what: str) -> None:
        """Write a line into the log."""
        self.log.append((self.clock.time, what))

    # --- weather

    def _compute(self, request: HttpRequest, now: datetime) -> HttpResponse:
        answer = self.compute.handle(request, now)
        if request.path.endswith("/aggregated/instances") and not self._undisturbed:
            self.fleet_is_whole = answer.status == 200 and b'"unreachables"' not in answer.body
            if self.fleet_is_whole:
                self.weather.saw_fleet(answer)
        if request.method != "GET":
            self.onlooker.check_machines()
        return answer

    def _compute_fault(self, method: str, request: HttpRequest) -> Fault | None:
        if self._undisturbed:
            return None
        by_worker = request.headers.get("Authorization", "").startswith(_WORKER)
        if method == INSERT:
            self.onlooker.creating(request.json().get("labels", {}))
        elif method == "compute.instances.delete" and not by_worker:
            zone, name = request.segments[5], request.segments[7]
            self.onlooker.deleting(self.compute.machine(zone, name), fleet_is_whole=self.fleet_is_whole)
        elif method == "compute.disks.delete":
            self.onlooker.deleting_disk(self.compute.disk_labels(request.segments[5], request.segments[7]))
        return self._fault(method, request, by_worker=by_worker)

    def _storage_fault(self, method: str, request: HttpRequest) -> Fault | None:
        if self._undisturbed:
            return None
        by_worker = request.headers.get("Authorization", "").startswith(_WORKER)
        return self._fault(method, request, by_worker=by_worker)

    def _fault(self, method: str, request: HttpRequest, *, by_worker: bool) -> Fault | None:
        mishap = self.weather.call(method, request, of_worker=by_worker)
        if mishap is None:
            return None
        self.note(f"    {method} by {'worker' if by_worker else 'plane'}: {mishap}")
        if mishap.late:
            self._apply_late(request, mishap)
        return Fault(answer=mishap.answer, applied=mishap.applied and not mishap.late)

    def _apply_late(self, request: HttpRequest, mishap: Mishap) -> None:
        self.pending += 1

        def apply(_at: datetime) -> None:
            self.pending -= 1
            self._quietly(request)

        self.agenda.at(self.clock.time + mishap.late, apply)

    def _quietly(self, request: HttpRequest) -> HttpResponse:
        """Carry a request out undisturbed by any weather, and unwatched."""
        core = self.compute.handle if request.path.startswith("/compute/") else self.objects.handle
        before, self._undisturbed = self._undisturbed, True
        try:
            return core(request, self.clock.time)
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

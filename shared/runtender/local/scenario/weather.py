"""A scenario at work on one local cloud: the seams of the simulated services, joined to the scenario's rules."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from types import TracebackType

from runtender.local.compute.core import ComputeCore
from runtender.local.compute.events import Event
from runtender.local.compute.quotas import GPUS_ALL_REGIONS, Quotas
from runtender.local.compute.server import ComputeServer
from runtender.local.compute.stock import Stock
from runtender.local.functions_process import FunctionsProcess
from runtender.local.http import Fault, HttpRequest, HttpResponse
from runtender.local.kubernetes.events import Event as PodEvent
from runtender.local.kubernetes.server import KubernetesServer
from runtender.local.objects import ObjectServer
from runtender.local.scenario.calls import UPLOAD, CallFaults, target_of
from runtender.local.scenario.clock import CloudClock, Timers
from runtender.local.scenario.events import EventArrivals
from runtender.local.scenario.lists import FLEET, FleetLists
from runtender.local.scenario.pods import PodStrikes
from runtender.local.scenario.rules import QuotaRule, Scenario
from runtender.local.scenario.strangers import CREATE_JOB, INSERT, Strangers, zone_of
from runtender.local.scenario.strikes import Strikes
from runtender.local.standing_cluster import StandingCluster
from runtender.local.vm.runner import VmRunner
from runtender.settings import Settings


class Weather(AbstractContextManager["Weather"]):
    """What the services of a local cloud ask: `clock`, `stock`, `quotas`, `arrivals` and `fault`.

    `begin` names the services once they are there; until then no call may come in.
    """

    _core: ComputeCore
    _compute: ComputeServer
    _objects: ObjectServer
    _cluster: StandingCluster
    _strikes: Strikes
    _pod_strikes: PodStrikes

    def __init__(self, scenario: Scenario, settings: Settings, functions: FunctionsProcess) -> None:
        scale = settings.time_scale
        self._scenario = scenario
        self._timers = Timers(scale)
        self.clock = CloudClock(scale)
        elapsed = self.clock.elapsed
        self.stock = Stock(scenario.stockouts, opened_at=self.clock.opened_at, scale=scale)
        self.quotas = _quotas(scenario.quotas)
        self.arrivals = EventArrivals(scenario.events, settings=settings, elapsed=elapsed, scale=scale)
        self._calls = CallFaults(
            scenario.calls, elapsed=elapsed, kill=functions.kill, apply_later=self._apply_later
        )
        self._lists = FleetLists(scenario.lists, elapsed=elapsed, silence=self._silence, look=self._truth)
        self._strangers = Strangers(scenario.strangers, self._truth, self._truth_of_cluster)
        self._inserts: list[str] = []

    @property
    def insert_calls(self) -> tuple[str, ...]:
        """The zones of all calls that were to make a machine, in the order in which they came, however they were answered."""
        return tuple(self._inserts)

    @property
    def strangers(self) -> frozenset[str]:
        """The ids of the strangers' machines that were made."""
        return self._strangers.ids

    def begin(
        self,
        *,
        core: ComputeCore,
        compute: ComputeServer,
        objects: ObjectServer,
        machines: VmRunner,
        cluster: StandingCluster,
    ) -> None:
        """Let the scenario begin on these services."""
        self._core, self._compute, self._objects, self._cluster = core, compute, objects, cluster
        self._strikes = Strikes(
            self._scenario.machines, timers=self._timers, compute=compute, machines=machines
        )
        self._pod_strikes = PodStrikes(
            self._scenario.pods, timers=self._timers, cluster=cluster.server, pods=cluster.pods
        )
        rule = self._scenario.cluster
        for image in rule.missing_images:
            cluster.server.miss_image(image)
        for _ in range(rule.more):
            self._timers.after(rule.at, cluster.add_node)
        for jump in self._scenario.clock:
            self._timers.after(jump.at, partial(self.clock.jump, jump.by))

    def fault(self, method: str, request: HttpRequest) -> Fault | None:
        """Say what becomes of a call to any of the services."""
        if method == INSERT:
            self._inserts.append(zone_of(request))
            self._strangers.meet(request)
        if method == CREATE_JOB:
            self._strangers.meet_job(request)
        if method == UPLOAD:
            self._strikes.sent(target_of(method, request))
        listed = self._lists.fault(request) if method == FLEET else None
        return listed or self._calls(method, request)

    def saw(self, event: Event) -> None:
        """Learn what happened to a machine."""
        self._strikes.saw(event)

    def saw_pod(self, event: PodEvent) -> None:
        """Learn what happened to a pod."""
        self._pod_strikes.saw(event)

    def stored(self, name: str) -> None:
        """Learn of an object that the plane is notified of."""
        self._strikes.stored(name)

    def close(self) -> None:
        """Let nothing more happen. May be called twice."""
        self._timers.close()

    def _silence(self, zones: Sequence[str]) -> None:
        self._core.silence(zones)

    def _truth(self, request: HttpRequest) -> HttpResponse:
        """Answer a request in the midst of another one, which has the turn."""
        return self._core.apply(request, self.clock.now())

    def _truth_of_cluster(self, request: HttpRequest) -> HttpResponse:
        """The same, of the standing cluster."""
        return self._cluster.answer_in_turn(request)

    def _apply_later(self, method: str, request: HttpRequest, span: timedelta) -> None:
        servers: dict[str, ComputeServer | ObjectServer | KubernetesServer] = {
            "compute": self._compute,
            "kubernetes": self._cluster.server,
            "storage": self._objects,
        }
        self._timers.after(span, partial(servers[method.partition(".")[0]].apply, request))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _quotas(rules: Sequence[QuotaRule]) -> Quotas:
    """Lay a scenario's limits over the usual ones."""
    usual = Quotas()
    by_region: dict[str, dict[str, float]] = {}
    for rule in rules:
        if rule.region is not None:
            by_region.setdefault(rule.region, {})[rule.meter] = rule.limit
    anywhere = {rule.meter: rule.limit for rule in rules if rule.region is None}
    return Quotas(
        regional={**usual.regional, **anywhere},
        by_region=by_region,
        gpus_all_regions=anywhere.get(GPUS_ALL_REGIONS, usual.gpus_all_regions),
    )

"""A scenario's rules about machines: what happens to one, some time after it came up or its worker started."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from runtender.ids import parse_marker_object
from runtender.local.compute.events import Booted, Event
from runtender.local.compute.instances import Instance
from runtender.local.compute.server import ComputeServer
from runtender.local.scenario.clock import Timers
from runtender.local.scenario.rules import Blow, MachineRule, Moment
from runtender.local.scenario.turns import Hits
from runtender.local.vm.runner import VmRunner
from runtender.worker.layout import SUMMARY_SUFFIX

IsMeant = Callable[[Instance], bool]


class Strikes:
    """Strikes machines when their time has come. Told of events and stored markers, it decides nothing by itself."""

    def __init__(
        self, rules: Sequence[MachineRule], *, timers: Timers, compute: ComputeServer, machines: VmRunner
    ) -> None:
        self._rules = tuple(rules)
        self._timers = timers
        self._compute = compute
        self._hits = Hits()
        self._blows: Mapping[Blow, Callable[[MachineRule, Instance], object]] = {
            Blow.PREEMPT: lambda _, machine: compute.preempt(machine.order.zone, machine.order.name),
            Blow.HOST_ERROR: lambda _, machine: compute.host_error(machine.order.zone, machine.order.name),
            Blow.LOSE: lambda _, machine: compute.lose(machine.order.zone, machine.order.name),
            Blow.KILL_SCRIPT: lambda _, machine: machines.signal_script(machine.id, signal.SIGKILL),
            Blow.TERMINATE_SCRIPT: lambda _, machine: machines.signal_script(machine.id, signal.SIGTERM),
            Blow.END_CONTAINER: lambda rule, machine: machines.end_containers(
                machine.id, rule.exit_code, out_of_memory=rule.out_of_memory
            ),
        }

    def saw(self, event: Event) -> None:
        """Learn what happened to a machine. A second boot is no new machine."""
        if isinstance(event, Booted) and event.boot == 1:
            self._prepare(Moment.BOOTED, lambda machine: machine.id == event.instance_id)

    def stored(self, name: str) -> None:
        """Learn of a marker object."""
        marker = parse_marker_object(name)
        if marker is not None and marker.stage == "started":
            self._prepare(Moment.STARTED, _of_nonce(marker.nonce))

    def sent(self, name: str) -> None:
        """Learn of an object that a worker is about to store; its folder is that of its nonce."""
        if name.endswith(SUMMARY_SUFFIX):
            self._prepare(Moment.SUMMARY, _of_nonce(name.split("/")[-2]))

    def _prepare(self, moment: Moment, is_meant: IsMeant) -> None:
        for index, rule in enumerate(self._rules):
            if rule.moment is moment:
                self._timers.after(rule.after, partial(self._strike, index, is_meant))

    def _strike(self, index: int, is_meant: IsMeant) -> None:
        rule = self._rules[index]
        for machine in filter(is_meant, self._compute.machines()):
            order = machine.order
            here = rule.where.matches(zone=order.zone, region=order.region, labels=order.labels)
            if here and self._hits.take(index, rule.first):
                self._blows[rule.blow](rule, machine)


def _of_nonce(nonce: str) -> IsMeant:
    return lambda machine: machine.order.labels.get("sf-nonce") == nonce

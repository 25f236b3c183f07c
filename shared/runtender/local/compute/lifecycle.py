"""The life of machines: made, staged, running, stopped, gone, each after its time, each step with its operation.

Nothing here waits. A change notes the next one on the agenda together with the machine's turn; when a machine has moved on
meanwhile, the note is stale and nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from runtender.local.compute import errors
from runtender.local.compute.agenda import Agenda
from runtender.local.compute.disks import Disk, Disks
from runtender.local.compute.events import Event, Halted, Removed, Stopping, StopReason
from runtender.local.compute.instances import Instance, Order, Status
from runtender.local.compute.operations import SYSTEM, Operation, Operations
from runtender.local.compute.stock import Shortage
from runtender.local.compute.timings import Timings
from runtender.local.scenario import Shape

Step = Callable[[Instance, datetime], None]

_FIRST_ID = 1_000_000_000_000_000_000
_NO_GRACE = timedelta(0)


class Lifecycle:
    """All machines of a project and what becomes of them. Callers run the agenda up to their `now` first."""

    def __init__(self, timings: Timings, agenda: Agenda, operations: Operations, disks: Disks) -> None:
        self._timings = timings
        self._agenda = agenda
        self._operations = operations
        self._disks = disks
        self._instances: dict[str, Instance] = {}
        self._made = 0
        self._events: list[Event] = []

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The machines that the API shows."""
        return tuple(self._instances.values())

    def find(self, zone: str, name: str) -> Instance | None:
        """Look a machine up by its name or numeric id."""
        for instance in self._instances.values():
            if instance.order.zone == zone and name in {instance.order.name, instance.id}:
                return instance
        return None

    def drain(self) -> tuple[Event, ...]:
        """Hand out the events since the last call."""
        events, self._events = tuple(self._events), []
        return events

    def insert(
        self, order: Order, now: datetime, *, user: str, request_id: str, shortage: Shortage | None
    ) -> Operation:
        """Begin to make a machine. It is seen at once, also when a shortage will end it."""
        instance_id = self._next_id()
        operation = self._open(order, instance_id, "insert", now, user=user, request_id=request_id)
        if error := self._attach_disk(order, now):
            return self._operations.finish(operation.name, now, error=error)
        instance = self._keep(Instance(id=instance_id, order=order, created_at=now, insert=operation.name))
        if shortage and shortage.shape is Shape.OPERATION:
            self._later(instance, now + self._timings.refuse, self._refusing(shortage))
        else:
            late = shortage is not None
            self._later(instance, now + self._timings.provision, self._dropping if late else self._stage)
        return operation

    def refuse(
        self, order: Order, now: datetime, *, user: str, request_id: str, error: errors.OperationError
    ) -> Operation:
        """Record an insert that fails before anything is made."""
        operation = self._open(order, self._next_id(), "insert", now, user=user, request_id=request_id)
        return self._operations.finish(operation.name, now, error=error)

    def delete(self, instance: Instance, now: datetime, *, user: str, request_id: str) -> Operation:
        """Begin to remove a machine, whatever state it is in."""
        operation = self._open(instance.order, instance.id, "delete", now, user=user, request_id=request_id)
        deletes = (*instance.deletes, operation.name)
        if instance.status is Status.STOPPING:
            # Not a move: what stops it already goes on.
            self._keep(replace(instance, deletes=deletes, removal=True))
        elif instance.status is Status.RUNNING:
            self._stop(replace(instance, deletes=deletes), StopReason.DELETED, now, removal=True)
        else:
            self._drop(replace(instance, deletes=deletes), now, error=errors.cancelled())
        return operation

    def preempt(self, instance: Instance, now: datetime) -> None:
        """Take a running machine away for somebody who pays more."""
        self._record(instance, "compute.instances.preempted", now, "Instance was preempted.")
        self._stop(instance, StopReason.PREEMPTED, now, removal=instance.order.ends_by_delete)

    def host_error(self, instance: Instance, now: datetime) -> None:
        """Let the hardware under a running machine fail: the power is off at once."""
        self._record(instance, "compute.instances.hostError", now, "Instance terminated by Compute Engine.")
        stopped = self._stop(instance, StopReason.HOST_ERROR, now, removal=False, grace=_NO_GRACE)
        self._halt(stopped, now)
        if instance.order.restarts:
            self._record(
                instance, "compute.instances.automaticRestart", now, "Instance automatically restarted."
            )
            again = self._move(self._instances[instance.id], status=Status.STAGING, stop=None)
            self._later(again, now + self._timings.stage, self._boot)

    def lose(self, instance: Instance, now: datetime) -> None:
        """Let a machine be gone, with its disk, and no operation tell of it."""
        self._events.append(Halted(instance_id=instance.id))
        self._remove(instance, now)

    def guest_off(self, instance_id: str, boot: int, now: datetime) -> None:
        """Learn from whoever runs the machine that it has switched itself off, asked to or not."""
        instance = self._instances.get(instance_id)
        if instance is None or instance.boots != boot:
            # Gone, or up again: the news is of an earlier boot.
            return
        if instance.status is Status.RUNNING:
            self._record(
                instance, "compute.instances.guestTerminate", now, "Instance terminated by guest OS shutdown."
            )
            instance = self._stop(instance, StopReason.POWERED_OFF, now, removal=False, grace=_NO_GRACE)
        if instance.status is Status.STOPPING and instance.stopped_at is None:
            self._halt(instance, now)

    def _stage(self, instance: Instance, now: datetime) -> None:
        self._later(self._move(instance, status=Status.STAGING), now + self._timings.stage, self._boot)

    def _boot(self, instance: Instance, now: datetime) -> None:
        if instance.insert:
            self._operations.finish(instance.insert, now)
        up = self._move(
            instance,
            status=Status.RUNNING,
            insert=None,
            boots=instance.boots + 1,
            started_at=now,
            stopped_at=None,
        )
        self._events.append(up.booted())
        if up.order.max_run is not None:
            self._later(up, now + up.order.max_run, self._expire)

    def _expire(self, instance: Instance, now: datetime) -> None:
        deletes = instance.order.ends_by_delete
        kind = "compute.instances.deferredDelete" if deletes else "compute.instances.deferredStop"
        self._record(instance, kind, now, "Instance reached its run time limit.")
        self._stop(instance, StopReason.EXPIRED, now, removal=deletes)

    def _refusing(self, shortage: Shortage) -> Step:
        def refuse(instance: Instance, now: datetime) -> None:
            order = instance.order
            gpus = f"{order.accelerator_type}:{order.accelerator_count}" if order.accelerator_count else ""
            error = errors.stockout(
                zone_path=f"projects/{order.project}/zones/{order.zone}",
                machine=order.machine.name,
                attachment=gpus,
                zones_available=shortage.zones_available,
            )
            self._remove(instance, now, error=error)

        return refuse

    def _dropping(self, instance: Instance, now: datetime) -> None:
        """Accept the insert, then stop the machine before it was ever up: a stock-out that no error tells of."""
        if instance.insert:
            self._operations.finish(instance.insert, now)
        stopping = self._move(instance, status=Status.STOPPING, insert=None, stop=StopReason.NO_CAPACITY)
        self._later(stopping, now + self._timings.stage, self._halt)

    def _stop(
        self,
        instance: Instance,
        reason: StopReason,
        now: datetime,
        *,
        removal: bool,
        grace: timedelta | None = None,
    ) -> Instance:
        if grace is None:
            grace = self._timings.spot_grace if instance.order.spot else self._timings.grace
        stopping = self._move(instance, status=Status.STOPPING, stop=reason, removal=removal, stopped_at=None)
        self._events.append(Stopping(instance_id=instance.id, reason=reason, grace=grace))
        self._later(stopping, now + grace, self._halt)
        return stopping

    def _halt(self, instance: Instance, now: datetime) -> None:
        if instance.boots:
            self._events.append(Halted(instance_id=instance.id))
        if instance.removal:
            off = self._move(instance, stopped_at=now)
            self._later(off, now + self._timings.remove, self._remove)
        else:
            self._move(instance, status=Status.TERMINATED, stopped_at=now)

    def _drop(self, instance: Instance, now: datetime, *, error: errors.OperationError) -> None:
        """Remove a machine that is not up. An insert that was still going on ends with `error`."""
        if instance.insert:
            self._operations.finish(instance.insert, now, error=error)
        gone = self._move(instance, status=Status.STOPPING, insert=None, removal=True, stopped_at=now)
        self._later(gone, now + self._timings.remove, self._remove)

    def _remove(
        self, instance: Instance, now: datetime, *, error: errors.OperationError | None = None
    ) -> None:
        del self._instances[instance.id]
        self._disks.detach(instance.order.path)
        if instance.order.boot_disk.auto_delete:
            self._disks.remove(instance.order.zone, instance.order.boot_disk.name)
        if instance.insert:
            self._operations.finish(instance.insert, now, error=error)
        for name in instance.deletes:
            self._operations.finish(name, now)
        self._events.append(Removed(instance_id=instance.id))

    def _attach_disk(self, order: Order, now: datetime) -> errors.OperationError | None:
        asked = order.boot_disk
        disk = self._disks.get(order.zone, asked.name)
        if disk is not None and disk.user:
            return errors.disk_in_use(disk.path, disk.user)
        if disk is None:
            disk = Disk(
                id=self._next_id(),
                project=order.project,
                zone=order.zone,
                name=asked.name,
                size_gb=asked.size_gb,
                type=asked.type,
                image=asked.image,
                labels=asked.labels,
                created_at=now,
            )
        self._disks.put(replace(disk, user=order.path))
        return None

    def _record(self, instance: Instance, kind: str, now: datetime, note: str) -> None:
        operation = self._open(instance.order, instance.id, kind, now, user=SYSTEM)
        self._operations.finish(operation.name, now, note=note)

    def _open(
        self, order: Order, instance_id: str, kind: str, now: datetime, *, user: str, request_id: str = ""
    ) -> Operation:
        return self._operations.open(
            project=order.project,
            zone=order.zone,
            kind=kind,
            target=order.path,
            target_id=instance_id,
            user=user,
            now=now,
            request_id=request_id,
        )

    def _move(self, instance: Instance, **changes: Any) -> Instance:
        return self._keep(instance.moved(**changes))

    def _keep(self, instance: Instance) -> Instance:
        self._instances[instance.id] = instance
        return instance

    def _later(self, instance: Instance, due: datetime, step: Step) -> None:
        def act(at: datetime) -> None:
            current = self._instances.get(instance.id)
            if current is not None and current.turn == instance.turn:
                step(current, at)

        self._agenda.at(due, act)

    def _next_id(self) -> str:
        self._made += 1
        return str(_FIRST_ID + self._made)

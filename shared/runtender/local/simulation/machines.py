"""Runs the guests of a simulated world: a machine that boots gets a life, one that is told to go down hears of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from runtender.local.compute.agenda import Agenda
from runtender.local.compute.events import Booted, Event, Halted, Removed, Stopping
from runtender.local.simulation.guests import Behaviour, Guest, Surroundings


class Machines:
    """All guests. `behaviour` tells of each new one what is in store for it."""

    def __init__(
        self, agenda: Agenda, around: Surroundings, behaviour: Callable[[Booted], Behaviour]
    ) -> None:
        self._agenda = agenda
        self._around = around
        self._behaviour = behaviour
        self._guests: dict[str, Guest] = {}
        self._disks: dict[str, dict[str, bytes]] = {}
        self._turns: dict[str, int] = {}

    def tell(self, event: Event, now: datetime) -> None:
        """Let an event of the platform happen to its machine."""
        match event:
            case Booted():
                self._boot(event, self._behaviour(event), now)
            case Stopping():
                self._stop(event, now)
            case Halted():
                self._end(event.instance_id)
            case Removed():
                self._end(event.instance_id)
                self._disks.pop(event.instance_id, None)

    def reboot(self, instance_id: str, now: datetime) -> bool:
        """Let a machine crash and boot again, unseen by the platform; False when it runs no guest."""
        guest = self._guests.get(instance_id)
        if guest is None or guest.stopped:
            return False
        self._end(instance_id)
        self._boot(guest.booted, guest.behaviour, now)
        return True

    def living(self) -> tuple[Guest, ...]:
        """Return the guests whose shell runs."""
        return tuple(self._guests.values())

    def _boot(self, booted: Booted, behaviour: Behaviour, now: datetime) -> None:
        disk = self._disks.setdefault(booted.instance_id, {})
        self._guests[booted.instance_id] = Guest(booted, behaviour, disk, self._around)
        self._turns.setdefault(booted.instance_id, 0)
        self._go_on(booted.instance_id, now)

    def _stop(self, event: Stopping, now: datetime) -> None:
        guest = self._guests.get(event.instance_id)
        if guest is not None and guest.stopped is None:
            # Its container is stopped first; the shell wakes up by that.
            guest.stopped = event.reason
            self._go_on(event.instance_id, now)

    def _go_on(self, instance_id: str, now: datetime) -> None:
        guest = self._guests[instance_id]
        self._turns[instance_id] += 1
        turn = self._turns[instance_id]
        try:
            nap = next(guest.life)
        except StopIteration:
            self._guests.pop(instance_id, None)
            return

        def wake(at: datetime) -> None:
            if self._turns.get(instance_id) == turn:
                self._go_on(instance_id, at)

        self._agenda.at(now + timedelta(seconds=nap), wake)

    def _end(self, instance_id: str) -> None:
        guest = self._guests.pop(instance_id, None)
        if guest is not None:
            self._turns[instance_id] += 1
            guest.life.close()

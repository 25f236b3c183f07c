"""Runs the guests of a simulated world: a machine that boots gets a life, one that is told to go down hears of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from runtender.local.compute.agenda import Agenda
from runtender.local.compute.events import Booted, Event, Halted, Removed, Stopping
from runtender.local.simulation.guests import Behaviour, Guest, Surroundings
from runtender.local.simulation.lives import Lives


class Machines:
    """All guests. `behaviour` tells of each new one what is in store for it."""

    def __init__(
        self, agenda: Agenda, around: Surroundings, behaviour: Callable[[Booted], Behaviour]
    ) -> None:
        self._lives = Lives(agenda)
        self._around = around
        self._behaviour = behaviour
        self._guests: dict[str, Guest] = {}
        self._disks: dict[str, dict[str, bytes]] = {}

    def tell(self, event: Event, now: datetime) -> None:
        """Let an event of the platform happen to its machine."""
        match event:
            case Booted():
                self._boot(event, self._behaviour(event), now)
            case Stopping():
                self._stop(event, now)
            case Halted():
                self._lives.end(event.instance_id)
            case Removed():
                self._lives.end(event.instance_id)
                self._guests.pop(event.instance_id, None)
                self._disks.pop(event.instance_id, None)

    def reboot(self, instance_id: str, now: datetime) -> bool:
        """Let a machine crash and boot again, unseen by the platform; False when it runs no guest."""
        guest = self._living(instance_id)
        if guest is None or guest.stopped:
            return False
        self._lives.end(instance_id)
        self._boot(guest.booted, guest.behaviour, now)
        return True

    def _boot(self, booted: Booted, behaviour: Behaviour, now: datetime) -> None:
        disk = self._disks.setdefault(booted.instance_id, {})
        guest = Guest(booted, behaviour, disk, self._around)
        self._guests[booted.instance_id] = guest
        self._lives.begin(booted.instance_id, guest.life, now)

    def _stop(self, event: Stopping, now: datetime) -> None:
        guest = self._living(event.instance_id)
        if guest is not None and guest.stopped is None:
            # Its container is stopped first; the shell wakes up by that.
            guest.stopped = event.reason
            self._lives.wake(event.instance_id, now)

    def _living(self, instance_id: str) -> Guest | None:
        return self._guests.get(instance_id) if instance_id in self._lives else None

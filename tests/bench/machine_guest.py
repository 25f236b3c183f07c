"""A machine that goes by the book: started marker, cells, summary, terminal marker, its own end."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from tests.bench.guest import write_cells, write_end, write_started
from tests.bench.world import World

from runtender.local.compute.agenda import Agenda
from runtender.local.compute.events import Booted, Event, Stopping
from runtender.runtimes.gce_vm import GceVm

CELLS_EVERY = timedelta(minutes=5)
_BOOT_TO_CONTAINER = timedelta(seconds=25)
_POWER_OFF = timedelta(seconds=2)
_FIRST_BOOT = 1


class MachineGuest:
    """The guest of the job's machine, whose work takes `length`."""

    def __init__(self, world: World, job_key: str, length: timedelta) -> None:
        self._world = world
        self._job_key = job_key
        self._length = length
        self._agenda = Agenda()

    def live(self) -> None:
        """Hear what happened to the machine, and do what is due."""
        now = self._world.clock.now()
        for event in self._world.compute.advance(now):
            self._hear(event, now)
        self._agenda.run(now)

    def _hear(self, event: Event, now: datetime) -> None:
        match event:
            case Booted():
                self._plan(now + _BOOT_TO_CONTAINER)
            case Stopping(instance_id=machine):
                compute = self._world.compute
                self._agenda.at(now + _POWER_OFF, lambda at: compute.guest_off(machine, _FIRST_BOOT, at))

    def _plan(self, started: datetime) -> None:
        self._agenda.at(started, self._start)
        for sequence, at in enumerate(cell_times(started, self._length)):
            self._agenda.at(at, partial(self._write_cells, sequence))
        self._agenda.at(started + self._length, self._end)

    def _start(self, _at: datetime) -> None:
        self._world.notify(write_started(self._world.objects, self._world.job(self._job_key)))

    def _write_cells(self, sequence: int, _at: datetime) -> None:
        write_cells(self._world.objects, self._world.job(self._job_key), sequence)

    def _end(self, _at: datetime) -> None:
        job = self._world.job(self._job_key)
        row = job.resources[-1]
        self._world.notify(write_end(self._world.objects, job))
        self._world.api.send(GceVm().delete(job, row, self._world.plane.settings))


def cell_times(started: datetime, length: timedelta) -> list[datetime]:
    """Return when a worker writes its files of cells: now and then, and the last one at the end of its work."""
    return [
        started + min((sequence + 1) * CELLS_EVERY, length) for sequence in range(length // CELLS_EVERY + 1)
    ]

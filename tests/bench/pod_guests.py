"""The pods of an Indexed Job, each a worker that goes by the book: started marker, cells, summary, terminal marker, exit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from tests.bench.guest import write_cells, write_end, write_started
from tests.bench.machine_guest import cell_times
from tests.bench.world import World

from runtender.local.compute.agenda import Agenda
from runtender.local.kubernetes.events import PodStarted

_PYTHON_UP = timedelta(seconds=2)
_MARKER_TO_EXIT = timedelta(seconds=1)
_ENDS = timedelta(minutes=1)


class PodGuests:
    """All workers of a job. Their work takes `length`; they end one after the other, over a minute. `tell` hears of each
    marker that they have written.
    """

    def __init__(self, world: World, job_key: str, length: timedelta, tell: Callable[[str], None]) -> None:
        assert world.cluster is not None
        self._world = world
        self._tell = tell
        self._cluster = world.cluster.kubernetes
        # What pods were told when they were made does not change.
        self._job = world.job(job_key)
        self._length = length
        self._between_ends = _ENDS / self._job.plan.worker_count
        self._agenda = Agenda()

    def live(self) -> None:
        """Start the containers that are to start, and do what is due."""
        now = self._world.clock.now()
        for event in self._cluster.advance(now):
            if isinstance(event, PodStarted):
                self._plan(event.uid, int(event.env["JOB_COMPLETION_INDEX"]), now)
        self._agenda.run(now)

    def _plan(self, uid: str, index: int, now: datetime) -> None:
        self._cluster.pod_started(uid, now)
        started = now + _PYTHON_UP
        length = self._length - index * self._between_ends
        self._agenda.at(started, partial(self._start, index))
        for sequence, at in enumerate(cell_times(started, length)):
            self._agenda.at(at, partial(self._write_cells, index, sequence))
        self._agenda.at(started + length, partial(self._end, index))
        ended = started + length + _MARKER_TO_EXIT
        self._agenda.at(ended, partial(self._cluster.pod_exited, uid, 0))

    def _start(self, index: int, _at: datetime) -> None:
        self._tell(write_started(self._world.objects, self._job, index))

    def _write_cells(self, index: int, sequence: int, _at: datetime) -> None:
        write_cells(self._world.objects, self._job, sequence, index)

    def _end(self, index: int, _at: datetime) -> None:
        self._tell(write_end(self._world.objects, self._job, index))

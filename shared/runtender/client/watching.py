"""Runs and their jobs as they change, in one place, for as long as somebody looks.

A store watches one document at a time, and blocks while nothing happens. So each document has a thread of its own that
passes on what it sees; the caller takes the news from a queue and can be interrupted at any time. Of each document the
versions come in order, none twice; a version that was replaced before anybody looked is left out.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

from runtender.client.records import RunRecord, record_of
from runtender.client.world import World
from runtender.errors import Retryable, RuntenderError
from runtender.ports import Snapshot, Store
from runtender.wire.documents import job_path, run_path

# A watch cannot be called off from outside, so it is taken up again after this long, which costs one read.
_SEGMENT_S = 10.0
_PAUSES_S = (0.2, 1.0, 5.0)

_News = tuple[str, Snapshot | None]


class RunsWatch:
    """Follows runs; to be used in a `with` statement.

    A store that cannot be reached is tried again for `patience` seconds since it last answered.
    """

    def __init__(self, store: Store, run_ids: Iterable[str], *, patience: float) -> None:
        self._store = store
        self._patience = patience
        self._headers = {run_path(run_id): run_id for run_id in run_ids}
        # Which header speaks of a job.
        self._header_of = {path: path for path in self._headers}
        self._news: queue.Queue[_News | RuntenderError] = queue.Queue()
        self._threads: dict[str, threading.Thread] = {}
        self._stop = threading.Event()
        self._seen: dict[str, Snapshot] = {}

    def __enter__(self) -> Self:
        for path in self._headers:
            self._follow(path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The threads end with their segment, or with the process: nobody waits for them.
        self._stop.set()

    def next(self, seconds: float) -> RunRecord | None:
        """Return a run and its families' newest jobs after a change, as far as they have been seen.

        None when `seconds` passed or nothing really changed. Raises what the store raised.
        """
        try:
            news = self._news.get(timeout=seconds)
        except queue.Empty:
            self._check_threads()
            return None
        if isinstance(news, RuntenderError):
            raise news
        path, snapshot = news
        known = self._seen.get(path)
        if snapshot is None or (known is not None and known.stamp == snapshot.stamp):
            return None
        self._seen[path] = snapshot
        return self._record(self._header_of[path])

    def _record(self, header_path: str) -> RunRecord | None:
        header = self._seen.get(header_path)
        if header is None:
            return None
        paths = [job_path(entry["job_key"]) for entry in header.data["families"].values()]
        for path in paths:
            self._header_of[path] = header_path
            self._follow(path)
        return record_of(header.data, (self._seen[path].data for path in paths if path in self._seen))

    def _follow(self, path: str) -> None:
        if path not in self._threads:
            thread = threading.Thread(target=self._pass_on, args=(path,), name=f"watch {path}", daemon=True)
            self._threads[path] = thread
            thread.start()

    def _pass_on(self, path: str) -> None:
        answered, failures = time.monotonic(), 0
        while not self._stop.is_set():
            try:
                for snapshot in self._store.watch(path, _SEGMENT_S):
                    answered, failures = time.monotonic(), 0
                    self._news.put((path, snapshot))
                    if self._stop.is_set():
                        return
            except Retryable as error:
                if time.monotonic() - answered >= self._patience:
                    self._news.put(error)
                    return
                self._stop.wait(_PAUSES_S[min(failures, len(_PAUSES_S) - 1)])
                failures += 1
            except RuntenderError as error:
                self._news.put(error)
                return

    def _check_threads(self) -> None:
        dead = next((path for path, thread in self._threads.items() if not thread.is_alive()), None)
        if dead is not None:
            raise RuntimeError(f"the watch of {dead} broke off")


def records(world: World, run_id: str) -> Iterator[RunRecord]:
    """Yield a run as it is now and after each change, without end; the caller stops when it has seen enough.

    Raises `Retryable` when the store has been out of reach for the world's patience.
    """
    with RunsWatch(world.store, [run_id], patience=world.patience.total_seconds()) as watch:
        while True:
            record = watch.next(_SEGMENT_S)
            if record is not None:
                yield record

"""A run and its jobs as they change, in one place, for as long as somebody looks.

A store watches one document at a time, and blocks while nothing happens. So each document has a thread of its own that
passes on what it sees; the caller takes the news from a queue and can be interrupted at any time.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from runtender.errors import RuntenderError
from runtender.model import Job, Run
from runtender.ports import Snapshot, Store
from runtender.wire.documents import job_from_document, job_path, run_from_document, run_path

# A watch cannot be called off from outside, so it is taken up again after this long, which costs one read.
_SEGMENT_S = 10.0

_News = tuple[str, Snapshot | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A run and its families' newest jobs as last seen. `run` is None until it has been."""

    run: Run | None = None
    jobs: Mapping[str, Job] = field(default_factory=dict)


class RunWatch:
    """Follows one run; to be used in a `with` statement."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run_path = run_path(run_id)
        self._news: queue.Queue[_News | RuntenderError] = queue.Queue()
        self._threads: dict[str, threading.Thread] = {}
        self._stop = threading.Event()
        self._seen: dict[str, Snapshot] = {}

    def __enter__(self) -> Self:
        self._follow(self._run_path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The threads end with their segment, or with the process: nobody waits for them.
        self._stop.set()

    def next(self, seconds: float) -> Picture | None:
        """Return the picture after a change, None when `seconds` passed or nothing really changed.

        Raises what the store raised.
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
        return self._picture()

    def _picture(self) -> Picture:
        header = self._seen.get(self._run_path)
        if header is None:
            return Picture()
        run = run_from_document(header.data)
        paths = {family: job_path(entry.job_key) for family, entry in run.families.items()}
        for path in paths.values():
            self._follow(path)
        seen = {family: self._seen[path] for family, path in paths.items() if path in self._seen}
        return Picture(run=run, jobs={family: job_from_document(job.data) for family, job in seen.items()})

    def _follow(self, path: str) -> None:
        if path not in self._threads:
            thread = threading.Thread(target=self._pass_on, args=(path,), name=f"watch {path}", daemon=True)
            self._threads[path] = thread
            thread.start()

    def _pass_on(self, path: str) -> None:
        try:
            while not self._stop.is_set():
                for snapshot in self._store.watch(path, _SEGMENT_S):
                    self._news.put((path, snapshot))
                    if self._stop.is_set():
                        return
        except RuntenderError as error:
            self._news.put(error)

    def _check_threads(self) -> None:
        dead = next((path for path, thread in self._threads.items() if not thread.is_alive()), None)
        if dead is not None:
            raise RuntimeError(f"the watch of {dead} broke off")

"""The embedded store: what Firestore is in the cloud, as one SQLite file, or in memory for simulations.

Functions, command line and simulators of a local cloud open the same file from several processes. Both stores
keep Firestore's rules (`gcp.documents`). Unlike there, a write that changes nothing changes the stamp too.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, assert_never

from runtender.errors import Conflict, Retryable
from runtender.gcp.documents import FrozenMap, check_size, checked, collection_of
from runtender.local.query import Question
from runtender.ports import Create, Document, Increment, Remove, Snapshot, Update, Write

_JOBS = "jobs"
# Far below what a person notices, far above what a read costs.
_WATCH_INTERVAL_S = 0.05
_OPEN_PAUSE_S = 0.005
# More writers of one process would only wait for each other, and each connection holds files and pages for good.
_MOST_AT_ONCE = 8
# `gcp.documents` reserves names of this form, so no document has a map that looks like one of our datetimes.
_MOMENT = "__datetime__"

# The index over `wake_at` makes the due query blind to jobs at rest. The counter gives each write of any
# document its own stamp: a deleted and recreated one never gets an old stamp back.
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS documents (
    path TEXT PRIMARY KEY, collection TEXT NOT NULL, stamp INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_collection ON documents (collection, path);
CREATE INDEX IF NOT EXISTS by_wake_at
    ON documents (collection, json_extract(body, '$.wake_at.{_MOMENT}'), path);
CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 0), last INTEGER NOT NULL);
INSERT OR IGNORE INTO counter VALUES (0, 0);
"""  # noqa: S608 - only constants of this module
_DUE = f"""
SELECT path FROM documents WHERE collection = '{_JOBS}' AND json_extract(body, '$.wake_at.{_MOMENT}') <= ?
ORDER BY json_extract(body, '$.wake_at.{_MOMENT}'), path LIMIT ?
"""  # noqa: S608 - only constants of this module
# Given as one JSON list, in the order wanted.
_BY_PATHS = """
SELECT documents.path, stamp, body FROM json_each(?) AS wanted JOIN documents ON documents.path = wanted.value
ORDER BY wanted.key
"""
_UPSERT = """
INSERT INTO documents VALUES (?, ?, ?, ?)
ON CONFLICT (path) DO UPDATE SET stamp = excluded.stamp, body = excluded.body
"""
# What goes away by itself or by an operator's hand; anything else is a bug of ours and surfaces as one.
_PASSING = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_FULL")


class SqliteStore:
    """A store in one file, safe for many threads and processes of one machine."""

    def __init__(self, path: Path, *, patience: timedelta = timedelta(seconds=20)) -> None:
        """Use the file at `path`, made at the first call; `patience` bounds the wait for another's write."""
        self._path = path
        self._patience = patience
        self._idle: list[sqlite3.Connection] = []
        self._turns: SimpleQueue[None] = SimpleQueue()
        for _ in range(_MOST_AT_ONCE):
            self._turns.put(None)

    def get(self, path: str) -> Snapshot | None:
        collection_of(path)
        with self._connection() as db:
            return _stored(db, path)

    def commit(self, writes: Sequence[Write]) -> tuple[Any, ...]:
        with self._connection() as db, db:
            # Immediate: two writers queue up here instead of failing when both turn from reading to writing.
            db.execute("BEGIN IMMEDIATE")
            return tuple([_carry_out(db, write) for write in writes])

    def due(self, now: datetime, limit: int) -> list[str]:
        with self._connection() as db:
            rows = db.execute(_DUE, (_moment_text(now), limit)).fetchall()
        return [path.rpartition("/")[2] for (path,) in rows]

    def find(
        self,
        collection: str,
        *,
        where: Mapping[str, Any] | None = None,
        order_by: str | None = None,
        descending: bool = False,
        limit: int = 100,
    ) -> list[Snapshot]:
        question = Question(where=where or {}, order_by=order_by, descending=descending, limit=limit)
        with self._connection() as db, db:
            # Both reads are of one moment.
            db.execute("BEGIN")
            paths = question.choose(_candidates(db, collection, question.fields))
            rows = db.execute(_BY_PATHS, (json.dumps(paths),)).fetchall()
        return [_snapshot(row) for row in rows]

    def watch(self, path: str, seconds: float | None = None) -> Iterator[Snapshot | None]:
        return _changes(lambda: self.get(path), seconds)

    def close(self) -> None:
        """Close the connections that no call is using."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to one call: one connection is not for two threads at once, and dear to open."""
        try:
            self._turns.get(timeout=self._patience.total_seconds())
        except Empty:
            raise Retryable(f"the store {self._path} is busy with other calls") from None
        try:
            db = self._borrowed()
            try:
                yield db
            finally:
                self._idle.append(db)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname.startswith(_PASSING):
                raise Retryable(f"the store {self._path} cannot be used now: {error}") from error
            raise
        finally:
            self._turns.put(None)

    def _borrowed(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            wait = self._patience.total_seconds()
            db = sqlite3.connect(self._path, timeout=wait, isolation_level=None, check_same_thread=False)
        try:
            self._write_ahead(db)
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _write_ahead(self, db: sqlite3.Connection) -> None:
        """Turn the file to a write-ahead log: readers never wait for a writer, a process's crash loses nothing.

        That needs the file alone, and SQLite does not wait for it as it does for a lock. So the waiting of those who
        open a new file at one moment is done here.
        """
        end = time.monotonic() + self._patience.total_seconds()
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() >= end:
                    raise
                time.sleep(_OPEN_PAUSE_S)
            else:
                return


class MemoryStore:
    """A store for simulations: the same rules, nothing on disk, and every call counted.

    `reads` counts calls of `get`, `due` and `find`, `commits` those of `commit`, refused ones included.
    Snapshots share their frozen data with the store.
    """

    def __init__(self) -> None:
        self.reads = 0
        self.commits = 0
        self._documents: dict[str, Snapshot | None] = {}
        self._last_stamp = 0
        self._lock = threading.Lock()

    def get(self, path: str) -> Snapshot | None:
        collection_of(path)
        self.reads += 1
        return self._documents.get(path)

    def commit(self, writes: Sequence[Write]) -> tuple[Any, ...]:
        with self._lock:
            self.commits += 1
            staged: dict[str, Snapshot | None] = {}
            view = ChainMap(staged, self._documents)
            stamps = tuple([self._stage(view, write) for write in writes])
            self._documents.update(staged)
            return stamps

    def due(self, now: datetime, limit: int) -> list[str]:
        self.reads += 1
        overdue = sorted(
            (snapshot.data["wake_at"], snapshot.path.rpartition("/")[2])
            for snapshot in self._collection(_JOBS)
            if isinstance(snapshot.data.get("wake_at"), datetime) and snapshot.data["wake_at"] <= now
        )
        return [job_key for _, job_key in overdue[:limit]]

    def find(
        self,
        collection: str,
        *,
        where: Mapping[str, Any] | None = None,
        order_by: str | None = None,
        descending: bool = False,
        limit: int = 100,
    ) -> list[Snapshot]:
        self.reads += 1
        question = Question(where=where or {}, order_by=order_by, descending=descending, limit=limit)
        return question.answer(self._collection(collection))

    def watch(self, path: str, seconds: float | None = None) -> Iterator[Snapshot | None]:
        return _changes(lambda: self._documents.get(path), seconds)

    def _collection(self, collection: str) -> list[Snapshot]:
        with self._lock:
            stored = [snapshot for snapshot in self._documents.values() if snapshot is not None]
        return [snapshot for snapshot in stored if collection_of(snapshot.path) == collection]

    def _stage(self, view: MutableMapping[str, Snapshot | None], write: Write) -> Any:
        data = _applied(write, view.get(write.path))
        if data is None:
            view[write.path] = None
            return None
        self._last_stamp += 1
        view[write.path] = Snapshot(path=write.path, data=data, stamp=self._last_stamp)
        return _answer(write, data, self._last_stamp)


def _applied(write: Write, current: Snapshot | None) -> FrozenMap | None:
    """Return the document after a write, None when it is gone; `Conflict` where the precondition fails."""
    collection_of(write.path)
    match write:
        case Remove():
            _expected(write, current)
            return None
        case Create():
            if current is not None:
                raise Conflict(write.path)
            after = checked(write.path, write.data)
        case Update():
            kept = _expected(write, current).data
            fields = {**kept, **checked(write.path, write.fields)}
            after = FrozenMap((name, value) for name, value in fields.items() if name not in write.remove)
        case Increment():
            after = _incremented(write, current.data if current else {})
        case _:
            assert_never(write)
    check_size(write.path, after)
    return after


def _expected(write: Update | Remove, current: Snapshot | None) -> Snapshot:
    if current is None or current.stamp != write.stamp:
        raise Conflict(write.path)
    return current


def _incremented(write: Increment, before: Document) -> FrozenMap:
    amounts = checked(write.path, write.amounts)
    fields = checked(write.path, write.fields)
    present = {name: before.get(name) for name in amounts}
    # Firestore takes whatever is no number for 0.
    sums = {name: amounts[name] + (old if type(old) in {int, float} else 0) for name, old in present.items()}
    return FrozenMap({**before, **fields, **sums})


def _answer(write: Write, after: Document, stamp: int) -> Any:
    return {name: after[name] for name in write.amounts} if isinstance(write, Increment) else stamp


def _carry_out(db: sqlite3.Connection, write: Write) -> Any:
    data = _applied(write, _stored(db, write.path))
    if data is None:
        db.execute("DELETE FROM documents WHERE path = ?", (write.path,))
        return None
    stamp: int = db.execute("UPDATE counter SET last = last + 1 RETURNING last").fetchone()[0]
    db.execute(_UPSERT, (write.path, collection_of(write.path), stamp, _encoded(data)))
    return _answer(write, data, stamp)


def _stored(db: sqlite3.Connection, path: str) -> Snapshot | None:
    row = db.execute("SELECT path, stamp, body FROM documents WHERE path = ?", (path,)).fetchone()
    return _snapshot(row) if row else None


def _candidates(
    db: sqlite3.Connection, collection: str, fields: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read only what a question asks for: reading a thousand documents whole takes longer than everything else here.

    All in one row: each further one would be a turn among the threads that want to run.
    """
    columns = ", json_type(body, ?), body -> ?" * len(fields)
    places = [f"$.{'.'.join(json.dumps(name) for name in field.split('.'))}" for field in fields]
    statement = f"SELECT json_group_array(json_array(path{columns})) FROM documents WHERE collection = ?"  # noqa: S608
    twice = [place for place in places for _ in range(2)]
    (listed,) = db.execute(statement, (*twice, collection)).fetchone()
    for path, *told in _decoded(listed):
        kinds, values = told[::2], told[1::2]
        # Without a kind there is no such field; that of a null is 'null'.
        yield path, {field: value for field, kind, value in zip(fields, kinds, values, strict=True) if kind}


def _snapshot(row: tuple[str, int, str]) -> Snapshot:
    path, stamp, body = row
    return Snapshot(path=path, stamp=stamp, data=_decoded(body))


def _decoded(text: str) -> Any:
    return json.loads(text, object_hook=_moment_or_map)


def _encoded(data: Document) -> str:
    return json.dumps(data, default=lambda moment: {_MOMENT: _moment_text(moment)}, separators=(",", ":"))


def _moment_or_map(pairs: dict[str, Any]) -> dict[str, Any] | datetime:
    return datetime.fromisoformat(pairs[_MOMENT]) if _MOMENT in pairs else pairs


def _moment_text(moment: datetime) -> str:
    """Of fixed width, so that texts sort as the moments do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _changes(read: Callable[[], Snapshot | None], seconds: float | None) -> Iterator[Snapshot | None]:
    """Yield what `read` gives now and each time its stamp is another one, for at most `seconds`."""
    end = None if seconds is None else time.monotonic() + seconds
    seen: object = object()
    while True:
        snapshot = read()
        stamp = None if snapshot is None else snapshot.stamp
        if stamp != seen:
            seen = stamp
            yield snapshot
        if end is not None and time.monotonic() >= end:
            return
        time.sleep(_WATCH_INTERVAL_S)

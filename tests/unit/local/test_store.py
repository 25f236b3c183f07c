"""What the embedded stores do beyond the contract: share a file between processes, count calls, give up in time."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from runtender.errors import Conflict, Retryable
from runtender.local.store import MemoryStore, SqliteStore
from runtender.ports import Create, Increment, Snapshot, Update

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

# Opens the file itself, as each function of a local cloud does, and adds to one counter by compare-and-set.
_WRITER = """
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from runtender.errors import Conflict
from runtender.local.store import SqliteStore
from runtender.ports import Increment, Update
store = SqliteStore(Path(sys.argv[1]))
store.commit([Increment(path="budget/all", amounts={"n": 0})])
done = 0
while done < 20:
    before = store.get("budget/all")
    try:
        store.commit([Update(path="budget/all", fields={"n": before.data["n"] + 1}, stamp=before.stamp)])
        done += 1
    except Conflict:
        pass
store.close()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    store = SqliteStore(path)
    yield store
    store.close()


def test_many_processes_make_one_file_and_lose_no_update(store, path):
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(path)]) for _ in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    found = store.get("budget/all")
    assert found is not None
    assert found.data == {"n": 80}


@pytest.mark.parametrize("round_", range(10))
def test_many_threads_may_be_the_first_to_open_a_file(store, round_):
    gate = threading.Barrier(8)

    def claim(_number: int) -> None:
        gate.wait(10)
        store.commit([Increment(path="budget/all", amounts={"n": 1})])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(claim, range(8)))
    found = store.get("budget/all")
    assert found is not None
    assert found.data == {"n": 8}


def test_a_store_sees_at_once_what_another_one_of_the_same_file_wrote(store, path):
    other = SqliteStore(path)
    (stamp,) = other.commit([Create(path="jobs/a", data={"at": NOW})])
    assert store.get("jobs/a") == Snapshot(path="jobs/a", data={"at": NOW}, stamp=stamp)
    other.close()


def test_stamps_go_on_after_a_restart(path):
    first = SqliteStore(path)
    (old,) = first.commit([Create(path="jobs/a", data={})])
    first.close()
    second = SqliteStore(path)
    (new,) = second.commit([Update(path="jobs/a", fields={}, stamp=old)])
    assert new > old
    with pytest.raises(Conflict):
        second.commit([Update(path="jobs/a", fields={}, stamp=old)])
    second.close()


def test_a_write_is_left_for_later_when_another_process_keeps_the_file(path):
    impatient = SqliteStore(path, patience=timedelta(milliseconds=20))
    impatient.commit([Create(path="jobs/a", data={"n": 1})])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Retryable, match=r"store\.db cannot be used now"):
        impatient.commit([Increment(path="jobs/a", amounts={"n": 1})])
    # Reading goes on meanwhile.
    assert impatient.get("jobs/a") is not None
    other.execute("ROLLBACK")
    impatient.commit([Increment(path="jobs/a", amounts={"n": 1})])
    other.close()
    impatient.close()


@pytest.fixture
def opened(monkeypatch):
    """The connections that are opened while a test runs."""
    connections, connect = [], sqlite3.connect

    def counted(*args, **options):
        connections.append(connect(*args, **options))
        return connections[-1]

    monkeypatch.setattr(sqlite3, "connect", counted)
    return connections


def test_a_rush_of_calls_opens_a_few_connections_and_loses_nothing(store, path, opened):
    store.commit([Increment(path="budget/all", amounts={"n": 0})])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    opened.clear()
    with ThreadPoolExecutor(40) as pool:
        done = [
            pool.submit(store.commit, [Increment(path="budget/all", amounts={"n": 1})]) for _ in range(40)
        ]
        # All of them are in the store by now, and wait for the file.
        time.sleep(0.3)
        other.execute("ROLLBACK")
        for each in done:
            each.result(60)
    other.close()
    assert len(opened) < 8
    found = store.get("budget/all")
    assert found is not None
    assert found.data == {"n": 40}


def test_calls_that_wait_for_others_are_left_for_later_as_well(path):
    impatient = SqliteStore(path, patience=timedelta(milliseconds=50))
    impatient.commit([Create(path="jobs/a", data={})])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(40) as pool:
        done = [
            pool.submit(impatient.commit, [Increment(path="jobs/a", amounts={"n": 1})]) for _ in range(40)
        ]
    assert {type(each.exception()) for each in done} == {Retryable}
    assert any("busy with other calls" in str(each.exception()) for each in done)
    other.close()
    impatient.close()


def test_a_file_that_cannot_be_opened_is_left_for_later(tmp_path):
    with pytest.raises(Retryable, match="unable to open"):
        SqliteStore(tmp_path / "absent" / "store.db").get("jobs/a")


def test_the_memory_store_counts_its_calls_refused_ones_too():
    store = MemoryStore()
    store.commit([Create(path="jobs/a", data={}), Create(path="jobs/b", data={})])
    with pytest.raises(Conflict):
        store.commit([Create(path="jobs/a", data={})])
    store.get("jobs/a")
    store.get("jobs/c")
    store.due(NOW, 10)
    store.find("jobs")
    assert (store.commits, store.reads) == (2, 4)

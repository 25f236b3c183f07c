"""What every Store does, run on the embedded ones and on Google's Firestore emulator."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import Any

import pytest

from runtender.errors import Conflict, Rejected
from runtender.ports import Create, Increment, Remove, Store, Update

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
SECOND = timedelta(seconds=1)

EMBEDDED = ["memory", "sqlite"]


def put(store: Store, path: str, **fields: Any) -> Any:
    """Make a document and return its stamp."""
    (stamp,) = store.commit([Create(path=path, data=fields)])
    return stamp


def read(store: Store, path: str) -> dict[str, Any]:
    snapshot = store.get(path)
    assert snapshot is not None
    return dict(snapshot.data)


def together(work: Callable[[int], Any], workers: int) -> list[Any]:
    """Do the same work in several threads, started at one moment; return the results."""
    gate = threading.Barrier(workers)

    def start(number: int) -> Any:
        gate.wait(10)
        return work(number)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(start, range(workers)))


# Values


DOCUMENT = {
    "text": 'Zürich → 東京 \t"\\',
    "empty": "",
    "whole": -(2**63),
    "part": 0.1,
    "whole_part": 1.0,
    "yes": True,
    "nothing": None,
    "at": NOW,
    "map": {"a.b": 1, "with space": {"deeper": [1, "two", None, {"at": NOW}]}, "`": 0},
    "rows": [{"at": NOW, "phase": "RUNNING"}, {}],
    "no_rows": [],
    "no_map": {},
}


def test_a_document_reads_back_as_it_was_written(store):
    put(store, "jobs/a", **DOCUMENT)
    found = read(store, "jobs/a")
    assert found == DOCUMENT
    assert [type(found[name]) for name in ("whole_part", "yes", "whole")] == [float, bool, int]


def test_a_moment_keeps_its_microseconds_and_comes_back_in_utc(store):
    put(store, "jobs/a", at=NOW.astimezone(timezone(timedelta(hours=-7))))
    at = read(store, "jobs/a")["at"]
    assert (at, at.tzinfo, type(at)) == (NOW, UTC, datetime)


def test_none_is_a_value_and_absence_is_not(store):
    put(store, "jobs/a", given=None)
    assert read(store, "jobs/a") == {"given": None}


def test_a_document_that_is_not_there_reads_as_none(store):
    assert store.get("jobs/a") is None


def test_a_document_below_a_document_stands_for_itself(store):
    put(store, "jobs/a/history/0", rows=[1])
    assert store.get("jobs/a") is None
    assert read(store, "jobs/a/history/0") == {"rows": [1]}


@pytest.mark.parametrize("path", ["jobs", "jobs/", "/jobs/a", "jobs/a/history", "jobs//a", ""])
def test_a_path_that_names_no_document_is_an_error_of_the_caller(store, path):
    with pytest.raises(ValueError, match="names no document"):
        store.get(path)
    with pytest.raises(ValueError, match="names no document"):
        put(store, path, a=1)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"end": 1}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"a": {"b": [1, [2]]}}, r"a\.b\[1\]: is a list in a list", id="a list in a list"),
        pytest.param({"a": {"__x__": 1}}, "reserved field name '__x__'", id="a reserved name"),
        pytest.param({"a": {"": 1}}, "reserved field name ''", id="an empty name"),
        pytest.param({"a": float("nan")}, "no JSON number", id="not a number"),
        pytest.param({"a": 2**63}, "64 bits", id="a number too large"),
        pytest.param({"a": "\ud800"}, "surrogate", id="text that is no Unicode"),
        pytest.param({"a": nested(20)}, "20 levels", id="too deep"),
        pytest.param({"a": "x" * 1_048_577}, "1,048,576", id="larger than a document may be"),
    ],
)
def test_data_that_a_document_cannot_hold_is_rejected_by_its_name(store, fields, words):
    with pytest.raises(Rejected, match=rf"(?s)'jobs/a'.*{words}"):
        put(store, "jobs/a", **fields)
    assert store.get("jobs/a") is None


def test_what_just_fits_is_taken(store):
    fields = {"a": nested(19), "b": "x" * 1_000_000, "c": 2**63 - 1}
    put(store, "jobs/a", **fields)
    assert read(store, "jobs/a") == fields


def test_a_document_cannot_grow_beyond_its_size(store):
    stamp = put(store, "jobs/a", a="x" * 600_000)
    with pytest.raises(Rejected, match="jobs/a"):
        store.commit([Update(path="jobs/a", fields={"b": "x" * 600_000}, stamp=stamp)])
    assert list(read(store, "jobs/a")) == ["a"]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        pytest.param(timedelta(1), TypeError, id="a duration"),
        pytest.param({1, 2}, TypeError, id="a set"),
        pytest.param(b"x", TypeError, id="bytes"),
        pytest.param(datetime(2026, 1, 1), ValueError, id="a moment without a zone"),  # noqa: DTZ001
    ],
)
def test_a_value_that_is_no_json_is_a_bug_of_ours(store, value, error):
    with pytest.raises(error):
        put(store, "jobs/a", a=[{"b": value}])


def test_what_is_done_to_a_value_afterwards_does_not_reach_the_store(store):
    rows = [{"a": 1}]
    put(store, "jobs/a", rows=rows)
    rows[0]["a"] = 2
    mine = read(store, "jobs/a")
    # A store may hand out copies, or values that refuse.
    with suppress(TypeError):
        mine["rows"][0]["a"] = 3
    with suppress(TypeError):
        mine["rows"].append(4)
    assert read(store, "jobs/a") == {"rows": [{"a": 1}]}


# Preconditions


def test_only_the_first_create_of_a_document_goes_through(store):
    put(store, "jobs/a", who="first")
    with pytest.raises(Conflict) as refusal:
        put(store, "jobs/a", who="second")
    assert refusal.value.path == "jobs/a"
    assert read(store, "jobs/a") == {"who": "first"}


def test_an_update_replaces_the_named_fields_and_keeps_the_others(store):
    stamp = put(store, "jobs/a", phase="PENDING", walk={"next": 1, "old": 2}, of_a_newer_schema={"x": [1]})
    fields = {"phase": "RUNNING", "walk": {"next": 2}, "name.with-dot": 3}
    store.commit([Update(path="jobs/a", fields=fields, stamp=stamp)])
    assert read(store, "jobs/a") == {
        "phase": "RUNNING",
        "walk": {"next": 2},
        "name.with-dot": 3,
        "of_a_newer_schema": {"x": [1]},
    }


def test_an_update_drops_the_fields_it_removes(store):
    stamp = put(store, "jobs/a", phase="STOPPING", wake_at=NOW, rows=[1])
    removal = Update(path="jobs/a", fields={"phase": "DONE"}, stamp=stamp, remove=("wake_at", "never_there"))
    store.commit([removal])
    assert read(store, "jobs/a") == {"phase": "DONE", "rows": [1]}


def test_a_stamp_of_a_commit_is_the_stamp_that_is_read(store):
    stamps = store.commit([Create(path="jobs/a", data={}), Create(path="jobs/b", data={})])
    assert stamps == tuple(snapshot.stamp for path in ("jobs/a", "jobs/b") if (snapshot := store.get(path)))


def test_an_update_with_the_stamp_of_the_write_before_goes_through(store):
    stamp = put(store, "jobs/a", n=0)
    for n in range(1, 4):
        (stamp,) = store.commit([Update(path="jobs/a", fields={"n": n}, stamp=stamp)])
    assert read(store, "jobs/a") == {"n": 3}


@pytest.mark.parametrize("write", ["update", "remove"])
@pytest.mark.parametrize("state", ["changed", "gone", "made anew"])
def test_a_write_with_an_old_stamp_is_refused(store, write, state):
    stamp = put(store, "jobs/a", n=1)
    if state == "changed":
        store.commit([Update(path="jobs/a", fields={"n": 2}, stamp=stamp)])
    else:
        store.commit([Remove(path="jobs/a", stamp=stamp)])
    if state == "made anew":
        put(store, "jobs/a", n=2)
    late = {
        "update": Update(path="jobs/a", fields={"n": 3}, stamp=stamp),
        "remove": Remove(path="jobs/a", stamp=stamp),
    }
    with pytest.raises(Conflict) as refusal:
        store.commit([late[write]])
    assert refusal.value.path == "jobs/a"
    if state == "gone":
        assert store.get("jobs/a") is None
    else:
        assert read(store, "jobs/a") == {"n": 2}


def test_a_removed_document_is_gone_and_has_no_stamp(store):
    stamp = put(store, "jobs/a", n=1)
    assert store.commit([Remove(path="jobs/a", stamp=stamp)]) == (None,)
    assert store.get("jobs/a") is None


def test_of_a_batch_with_one_conflict_nothing_is_written(store):
    stamp = put(store, "jobs/a", n=1)
    put(store, "runs/a", n=1)
    batch = [
        Create(path="jobs/b", data={}),
        Update(path="jobs/a", fields={"n": 2}, stamp=stamp),
        Increment(path="budget/c", amounts={"n": 1}),
        Create(path="runs/a", data={"n": 2}),
    ]
    with pytest.raises(Conflict) as refusal:
        store.commit(batch)
    assert refusal.value.path == "runs/a"
    assert [store.get("jobs/b"), store.get("budget/c")] == [None, None]
    assert [read(store, "jobs/a"), read(store, "runs/a")] == [{"n": 1}, {"n": 1}]


def test_of_a_batch_with_one_fault_nothing_is_written(store):
    batch = [Create(path="jobs/a", data={}), Create(path="jobs/b", data={"x": [[1]]})]
    with pytest.raises(Rejected):
        store.commit(batch)
    assert store.get("jobs/a") is None


@pytest.mark.parametrize("store", EMBEDDED, indirect=True)
def test_a_write_that_changes_nothing_changes_the_stamp(store):
    stamp = put(store, "jobs/a", n=1)
    (after,) = store.commit([Update(path="jobs/a", fields={"n": 1}, stamp=stamp)])
    assert after != stamp


@pytest.mark.parametrize(
    "store", [pytest.param("firestore", marks=pytest.mark.emulator("firestore"))], indirect=True
)
def test_firestore_takes_a_write_that_changes_nothing_for_none(store):
    """Why every write of a state carries a version and a token of its own."""
    stamp = put(store, "jobs/a", n=1)
    (after,) = store.commit([Update(path="jobs/a", fields={"n": 1}, stamp=stamp)])
    assert after == stamp


# Many writers


def test_of_many_creates_of_one_document_exactly_one_wins(store):
    def claim(number: int) -> bool:
        try:
            put(store, "claims/a", by=number)
        except Conflict:
            return False
        return True

    won = together(claim, 8)
    assert won.count(True) == 1
    assert read(store, "claims/a") == {"by": won.index(True)}


def test_of_many_updates_with_one_stamp_exactly_one_wins(store):
    stamp = put(store, "jobs/a", token="")

    def move(number: int) -> bool:
        try:
            store.commit([Update(path="jobs/a", fields={"token": f"t{number}"}, stamp=stamp)])
        except Conflict:
            return False
        return True

    won = together(move, 8)
    assert won.count(True) == 1
    assert read(store, "jobs/a") == {"token": f"t{won.index(True)}"}


def test_no_update_is_lost_among_writers_that_try_again(store):
    put(store, "jobs/a", n=0, token="")

    def add_five(number: int) -> None:
        done = 0
        while done < 5:
            before = store.get("jobs/a")
            assert before is not None
            fields = {"n": before.data["n"] + 1, "token": f"{number}-{done}"}
            with suppress(Conflict):
                store.commit([Update(path="jobs/a", fields=fields, stamp=before.stamp)])
                done += 1

    together(add_five, 4)
    assert read(store, "jobs/a")["n"] == 20


def test_increments_from_many_threads_all_count(store):
    def add_ten(_number: int) -> None:
        for _ in range(10):
            store.commit([Increment(path="budget/a", amounts={"n": 1, "m": 2})])

    together(add_ten, 8)
    assert read(store, "budget/a") == {"n": 80, "m": 160}


def test_an_increment_tells_the_sums_it_has_made(store):
    put(store, "budget/a", n=1, part=0.5)
    amounts = {"part": 1, "n": 3, "b": 2}
    answers = store.commit([Increment(path="budget/a", amounts=amounts)])
    assert answers == ({"n": 4, "part": 1.5, "b": 2},)
    assert read(store, "budget/a") == answers[0]


def test_each_of_many_increments_is_told_a_sum_of_its_own(store):
    def add(_number: int) -> int:
        (sums,) = store.commit([Increment(path="budget/a", amounts={"n": 1})])
        return int(sums["n"])

    assert sorted(together(add, 6)) == [1, 2, 3, 4, 5, 6]


def test_an_increment_sets_fields_beside_its_sums(store):
    for _ in range(2):
        store.commit([Increment(path="budget/a", amounts={"n": 1}, fields={"expires_at": NOW})])
    assert read(store, "budget/a") == {"n": 2, "expires_at": NOW}


def test_an_increment_keeps_other_fields_and_takes_what_is_no_number_for_zero(store):
    put(store, "budget/a", n=1, text="x", part=0.5, kept=[1])
    store.commit([Increment(path="budget/a", amounts={"n": -3, "text": 2, "part": 1, "new": 4})])
    assert read(store, "budget/a") == {"n": -2, "text": 2, "part": 1.5, "new": 4, "kept": [1]}


# Queries


def test_due_jobs_come_longest_overdue_first_and_not_a_moment_early(store):
    put(store, "jobs/now", wake_at=NOW)
    put(store, "jobs/early", wake_at=NOW + timedelta(microseconds=1))
    put(store, "jobs/long-ago", wake_at=NOW - timedelta(days=400))
    put(store, "jobs/b-same", wake_at=NOW - SECOND)
    put(store, "jobs/a-same", wake_at=NOW - SECOND)
    put(store, "runs/other", wake_at=NOW - SECOND)
    assert store.due(NOW, 10) == ["long-ago", "a-same", "b-same", "now"]
    assert store.due(NOW.astimezone(timezone(timedelta(hours=9))), 2) == ["long-ago", "a-same"]


def test_a_job_without_a_time_to_wake_is_never_due(store):
    put(store, "jobs/absent", phase="DONE")
    put(store, "jobs/none", wake_at=None)
    stamp = put(store, "jobs/dropped", wake_at=NOW)
    store.commit([Update(path="jobs/dropped", fields={}, remove=("wake_at",), stamp=stamp)])
    assert store.due(NOW + timedelta(days=1000), 10) == []


@pytest.fixture
def runs(store) -> dict[str, dict[str, Any]]:
    documents: dict[str, dict[str, Any]] = {
        "a": {"outcome": None, "n": 3, "families": {"ml": {"phase": "DONE"}}, "at": NOW},
        "b": {"outcome": "FAILED", "n": 1, "families": {"ml": {"phase": "RUNNING"}}, "at": NOW - SECOND},
        "c": {"n": 2, "at": NOW + SECOND, "yes": True},
        "d": {"outcome": "FAILED", "n": 2, "yes": 1},
    }
    store.commit([Create(path=f"runs/{name}", data=data) for name, data in documents.items()])
    put(store, "runs/a/history/0", outcome="FAILED", n=9)
    put(store, "jobs/e", outcome="FAILED", n=9)
    return documents


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        pytest.param({}, "abcd", id="everything, by name"),
        pytest.param({"where": {"outcome": "FAILED"}}, "bd", id="equal text"),
        pytest.param({"where": {"outcome": None}}, "a", id="none is not absence"),
        pytest.param({"where": {"outcome": "FAILED", "n": 2}}, "d", id="two fields"),
        pytest.param({"where": {"families.ml.phase": "DONE"}}, "a", id="a field of a map"),
        pytest.param({"where": {"families": {"ml": {"phase": "DONE"}}}}, "a", id="a whole map"),
        pytest.param({"where": {"at": NOW}}, "a", id="a moment"),
        pytest.param({"where": {"yes": True}}, "c", id="true is not one"),
        pytest.param({"where": {"n": 2.0}}, "cd", id="numbers are equal by value"),
        pytest.param({"where": {"no_such": 1}}, "", id="a field that none has"),
        pytest.param({"order_by": "n"}, "bcda", id="ascending, names break the tie"),
        pytest.param({"order_by": "n", "descending": True}, "adcb", id="descending"),
        pytest.param({"order_by": "at", "descending": True, "limit": 2}, "ca", id="the newest two"),
        pytest.param({"order_by": "families.ml.phase"}, "ab", id="by a field of a map; without it, left out"),
        pytest.param({"order_by": "yes"}, "cd", id="kinds of values have an order"),
        pytest.param({"limit": 1}, "a", id="bounded"),
    ],
)
def test_find_returns_the_documents_that_are_asked_for(store, runs, question, answer):
    found = store.find("runs", **question)
    assert [snapshot.path for snapshot in found] == [f"runs/{name}" for name in answer]
    assert [dict(snapshot.data) for snapshot in found] == [runs[name] for name in answer]


def test_find_reads_a_collection_below_a_document_in_order_of_its_names(store):
    put(store, "jobs/a", n=0)
    for name in ("00000010", "00000002", "00000001"):
        put(store, f"jobs/a/history/{name}", n=int(name))
    put(store, "jobs/b/history/00000003", n=3)
    put(store, "jobs/a/ledger/00000004", n=4)

    assert [found.data["n"] for found in store.find("jobs/a/history")] == [1, 2, 10]
    assert [found.path for found in store.find("jobs")] == ["jobs/a"]


def test_what_find_returns_can_be_written_back(store, runs):
    (found,) = store.find("runs", where={"families.ml.phase": "RUNNING"})
    store.commit([Update(path=found.path, fields={"n": 7}, stamp=found.stamp)])
    assert read(store, "runs/b")["n"] == 7


# Watching


def test_a_watch_tells_every_state_in_order(store):
    seen: list[Any] = []
    with ThreadPoolExecutor(1) as pool:
        changes = store.watch("jobs/a", seconds=20)
        seen.append(next(changes))

        def change(write: Callable[[], Any]) -> Any:
            made = pool.submit(write)
            snapshot = next(changes)
            seen.append(snapshot and dict(snapshot.data))
            return made.result()[0]

        stamp = change(lambda: store.commit([Create(path="jobs/a", data={"n": 1})]))
        stamp = change(lambda: store.commit([Update(path="jobs/a", fields={"n": 2}, stamp=stamp)]))
        change(lambda: store.commit([Remove(path="jobs/a", stamp=stamp)]))
        change(lambda: store.commit([Create(path="jobs/a", data={"n": 3})]))
    assert seen == [None, {"n": 1}, {"n": 2}, None, {"n": 3}]


def test_a_watch_never_goes_back_while_changes_come_fast(store):
    stamp = put(store, "jobs/a", n=0)

    def count() -> None:
        current = stamp
        for n in range(1, 31):
            (current,) = store.commit([Update(path="jobs/a", fields={"n": n}, stamp=current)])

    seen = []
    with ThreadPoolExecutor(1) as pool:
        counted = pool.submit(count)
        for snapshot in store.watch("jobs/a", seconds=20):
            assert snapshot is not None
            seen.append(snapshot.data["n"])
            if seen[-1] == 30:
                break
        counted.result()
    assert seen == sorted(set(seen))
    assert seen[-1] == 30


def test_a_watch_ends_after_its_time(store):
    put(store, "jobs/a", n=0)
    assert [snapshot and dict(snapshot.data) for snapshot in store.watch("jobs/a", seconds=0.1)] == [{"n": 0}]


def test_a_watch_without_an_end_goes_on_until_it_is_left(store):
    put(store, "jobs/a", n=0)
    assert len(list(islice(store.watch("jobs/a"), 1))) == 1

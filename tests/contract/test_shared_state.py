"""What all jobs share, the budget of creates and the limits on what is alive, holds on every store whoever writes at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from runtender.client.records import queue_places
from runtender.engine.admission import Admissions
from runtender.engine.budget import Budget
from runtender.engine.shortages import Shortages
from runtender.ids import job_key, key_digest
from runtender.model import (
    Admission,
    Block,
    Deadlines,
    Job,
    JobPlan,
    LedgerEntry,
    Phase,
    Placement,
    Scope,
    Verdict,
    Walk,
)
from runtender.ports import Create, Store
from runtender.settings import Settings
from runtender.wire.documents import job_from_document, job_path, job_to_document, job_update

NOW = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
AT_ONCE = 4
PLAN = JobPlan(
    runtime="gce",
    name="sf-a",
    machine_type="n2-standard-8",
    vcpus=8,
    image_uri="i",
    status_bucket="b",
    placements=(Placement(region="us-x1", zone="us-x1-a"),),
    capacity_wait=timedelta(minutes=45),
    run_limit=timedelta(hours=1),
    max_run_duration=timedelta(hours=2),
)


class StillClock:
    """Stands still; tokens are unique over all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens = 0

    def now(self) -> datetime:
        return NOW

    def sleep(self, _seconds: float) -> None:
        return

    def jitter(self) -> float:
        return 0.5

    def token(self) -> str:
        with self._lock:
            self._tokens += 1
            return f"t{self._tokens}"


@pytest.fixture
def plane(store: Store):
    def make(**environment):
        settings = Settings.from_env({"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "code", **environment})
        return SimpleNamespace(settings=settings, store=store, clock=StillClock())

    return make


def a_job(number, **changes):
    key = job_key(f"r{number}-0123456789ab", "statistical", 1)
    fields = {
        "job_key": key,
        "key": key_digest(key),
        "run_id": f"r{number}-0123456789ab",
        "family": "statistical",
        "attempt": 1,
        "runtime": "gce",
        "plan": PLAN,
        "deadlines": Deadlines(capacity=NOW),
        "accepted_at": NOW,
        "wake_at": NOW,
        "version": 1,
    }
    return Job(**{**fields, **changes})


def waiting(number):
    moment = NOW + timedelta(seconds=number)
    return a_job(number, admission=Admission.WAITING, queue_at=moment)


def put(store, *jobs):
    store.commit([Create(path=job_path(job.job_key), data=job_to_document(job)) for job in jobs])


def together(work):
    gate = threading.Barrier(AT_ONCE)

    def start(number):
        gate.wait(10)
        return work(number)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(start, range(AT_ONCE)))


def test_processes_that_draw_at_once_are_granted_the_budget_and_no_more(plane):
    of = plane(SF_API_BUDGET="3")

    def draw(number):
        # Each with a memory of its own, as processes have.
        budget = Budget(of)
        return [budget.draw(a_job(10 * number + index)) for index in range(5)]

    turns = [turn for drawn in together(draw) for turn in drawn]
    granted = turns.count(None)
    minutes = [turn.minute for turn in turns if turn is not None]
    assert granted == 3
    assert all(minutes.count(minute) <= 3 for minute in set(minutes))


def test_those_who_choose_at_once_let_in_no_more_than_there_is_room_for(plane, store):
    of = plane(SF_LIMITS='[{"jobs": 3}]')
    put(store, *(waiting(number) for number in range(8)))
    let_in = [key for keys in together(lambda _number: Admissions(of).admit()) for key in keys]
    live = store.find("jobs", where={"admission": "live"})
    assert sorted(let_in) == sorted(found.data["job_key"] for found in live)
    assert sorted(let_in) == [waiting(number).job_key for number in range(3)]


def test_who_is_let_in_looks_for_capacity_from_now_on_and_is_out_of_the_queue(plane, store):
    of = plane(SF_LIMITS='[{"jobs": 1}]')
    put(store, *(waiting(number) for number in range(3)))
    (key,) = Admissions(of).admit()
    snapshot = store.get(job_path(key))
    assert snapshot is not None
    job = job_from_document(snapshot.data)
    assert (job.admission, job.queue_at, job.version) == (Admission.LIVE, None, 2)
    assert job.deadlines.capacity == NOW + PLAN.capacity_wait
    assert queue_places(store) == {"r1-0123456789ab": 1, "r2-0123456789ab": 2}


def test_who_has_left_makes_room(plane, store):
    of = plane(SF_LIMITS='[{"jobs": 1}]')
    put(store, *(waiting(number) for number in range(2)))
    (first,) = Admissions(of).admit()
    assert Admissions(of).admit() == ()
    snapshot = store.get(job_path(first))
    assert snapshot is not None
    left = a_job(0, admission=Admission.LEFT, phase=Phase.DONE, wake_at=None, version=3)
    store.commit(job_update(left, snapshot, NOW))
    assert Admissions(of).admit() == (waiting(1).job_key,)


def test_a_note_about_a_place_is_found_by_those_who_want_such_a_machine(plane, store):
    of = plane()
    entry = LedgerEntry(
        candidate="us-x1/us-x1-a",
        verdict=Verdict.TRANSIENT_CAPACITY,
        code="STOCKOUT",
        message="no",
        elapsed_s=1,
        at=NOW,
    )
    Shortages(of).tell(a_job(1), a_job(1, walk=Walk(ledger=(entry, entry))))
    until = NOW + of.settings.timing.placement_block
    assert Shortages(of).known(PLAN) == (Block(scope=Scope.ZONE, name="us-x1-a", until=until, machine=""),)
    (note,) = store.find("blocks")
    assert (note.data["times"], note.data["code"]) == (2, "STOCKOUT")

"""The meeting of a job's ranks: who has to come, where they leave word, and whose word counts."""

from __future__ import annotations

import json

import pytest

from runtender.worker.barrier import (
    PATIENCE_S,
    BarrierError,
    Meeting,
    Report,
    arrive,
    await_peers,
    barrier_folder,
    barrier_id,
    is_needed,
)
from runtender.worker.objects import ObjectMissing
from runtender.worker.topology import Source, Topology, resolve_topology

ROOT = "gs://wh-bucket/warehouse/artifacts/p/ds"
DONE = Report(status="COMPLETED", n_cells=4, n_ok=3, n_error=1)


class Shelf:
    """Objects in memory, each written once."""

    def __init__(self):
        self.stored: dict[str, bytes] = {}

    def read(self, uri):
        if uri not in self.stored:
            raise ObjectMissing(uri)
        return self.stored[uri]

    def write_once(self, uri, content, content_type):
        self.stored.setdefault(uri, content)


class Time:
    """Passes only while somebody sleeps."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def meeting(rank=0, world_size=3, nonce="n1", attempt=1):
    topology = Topology(rank=rank, world_size=world_size, source=Source.K8S_INDEXED_JOB)
    return Meeting(folder="gs://b/f", attempt=attempt, nonce=nonce, topology=topology)


def waited(shelf, of=None):
    time = Time()
    return await_peers(of or meeting(), shelf, clock=time, sleep=time.sleep)


@pytest.mark.parametrize("rank", [pytest.param(1, id="acceptance-E22")])
def test_a_rank_leaves_word_below_its_run_and_job(rank):
    folder = barrier_folder(ROOT, "run-123", "sf-run-123-stat-a1")
    topology = Topology(rank=rank, world_size=2)
    found = Meeting(folder=folder, attempt=1, nonce="n", topology=topology).uri(rank)
    assert found == f"{ROOT}/run-123/_vertex_barrier/sf-run-123-stat-a1/rank_1.json"


def cluster(*hosts):
    return json.dumps({"cluster": {"workerpool0": list(hosts)}, "task": {"type": "workerpool0", "index": 0}})


@pytest.mark.parametrize(
    ("hosts", "needed"),
    [
        pytest.param(["a"], False, id="acceptance-E23 one worker"),
        pytest.param(["a", "b"], True, id="acceptance-E23 two workers"),
    ],
)
def test_only_several_workers_have_to_meet(hosts, needed):
    environ = {"CLUSTER_SPEC": cluster(*hosts)}
    assert is_needed(resolve_topology(None, None, environ), environ, manage_header=True) is needed


@pytest.mark.parametrize(
    ("source", "environ", "manage_header", "needed"),
    [
        pytest.param(Source.K8S_INDEXED_JOB, {}, False, False, id="pods that own no header"),
        pytest.param(Source.K8S_INDEXED_JOB, {}, True, True, id="pods of which one owns it"),
        pytest.param(Source.ENV, {}, True, False, id="workers that no platform started"),
        pytest.param(Source.ENV, {"SF_VERTEX_JOB_ID": "j"}, True, True, id="workers that know their job"),
    ],
)
def test_who_has_to_meet_depends_on_where_they_run(source, environ, manage_header, needed):
    topology = Topology(rank=0, world_size=2, source=source)
    assert is_needed(topology, environ, manage_header=manage_header) is needed


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        pytest.param({"SF_VERTEX_JOB_ID": "j", "CLOUD_ML_JOB_ID": "c"}, "j", id="the job's"),
        pytest.param({"CLOUD_ML_JOB_ID": "c"}, "c", id="the platform's"),
        pytest.param({}, "r-ml+statistical", id="the run's"),
        pytest.param({"SF_VERTEX_JOB_ID": "j", "SF_NONCE": "n1"}, "j-n1", id="one try of the job"),
    ],
)
def test_a_meeting_has_a_name_all_ranks_know(environ, name):
    assert barrier_id(environ, "r", ["ml", "statistical"]) == name


def test_rank_0_goes_on_when_all_have_come():
    shelf = Shelf()
    for rank in (1, 2):
        arrive(meeting(rank), shelf, DONE)
    assert waited(shelf) == {1: DONE, 2: DONE}


def test_missing_ranks_are_named_after_half_an_hour():
    shelf, time = Shelf(), Time()
    arrive(meeting(1), shelf, DONE)
    with pytest.raises(BarrierError, match="no word from rank 2"):
        await_peers(meeting(), shelf, clock=time, sleep=time.sleep)
    assert PATIENCE_S <= time.now < PATIENCE_S + 10


def test_a_rank_that_failed_is_not_waited_past():
    shelf = Shelf()
    arrive(meeting(2), shelf, Report(status="COMPLETED", error="out of memory"))
    with pytest.raises(BarrierError, match="rank 2 failed: out of memory"):
        waited(shelf)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"nonce": "n0"}, id="an earlier placement"),
        pytest.param({"attempt": 2}, id="another attempt"),
        pytest.param({"rank": 0}, id="another rank's word under this name"),
    ],
)
def test_the_word_of_another_try_does_not_count(other):
    shelf = Shelf()
    arrive(meeting(1, 2), shelf, DONE)
    uri = meeting().uri(1)
    shelf.stored[uri] = json.dumps({**json.loads(shelf.stored[uri]), **other}).encode()
    with pytest.raises(BarrierError, match="no word from rank 1"):
        waited(shelf, meeting(world_size=2))


@pytest.mark.parametrize("content", [b"", b"[]", b'{"rank"'])
def test_a_spoilt_object_is_no_word(content):
    shelf = Shelf()
    shelf.stored[meeting().uri(1)] = content
    with pytest.raises(BarrierError, match="no word"):
        waited(shelf, meeting(world_size=2))

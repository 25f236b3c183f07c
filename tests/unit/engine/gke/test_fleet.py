"""The Jobs that a cluster lists: those that have ended without a word are found, and those that nobody wants any more go."""

from __future__ import annotations

import pytest

from runtender.engine.fleet import read_fleets, suspects
from runtender.ports import Increment

CLUSTER = "projects/p/locations/us-central1-a/clusters/standing"
GRACE_TICKS = 24
"""Each Job has one tick per orphan grace in which it is looked at, and two sightings it takes."""


def orphan(world, **labels):
    """Put a Job there that looks like the job's own, but that no row of it stands for."""
    ours = {"sf-plane": "main", "sf-kind": "job", "sf-key": world.job["key"], "sf-nonce": "f" * 16}
    container = {"name": "worker", "image": "i"}
    world.apply(
        "POST",
        "/apis/batch/v1/namespaces/default/jobs",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": world.row["name"], "labels": {**ours, **labels}},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        },
    )


def fleet(world):
    (one,) = read_fleets(world.plane, world.plane.runtimes["gke"], [CLUSTER])
    return one


@pytest.fixture
def rested(at_work):
    """A plane whose one job is at rest."""
    for index in range(4):
        at_work.end_worker(index)
    at_work.tick(5)
    assert at_work.job["phase"] == "DONE"
    return at_work


def test_a_job_at_work_is_under_no_suspicion(at_work):
    assert fleet(at_work).complete
    assert [worker.location for worker in fleet(at_work).workers] == ["us-central1-a"]
    assert suspects(at_work.plane, fleet(at_work)) == set()


@pytest.mark.parametrize("code", [0, 3])
def test_one_that_has_finished_without_a_word_is_looked_at(at_work, code):
    at_work.events = False
    for index in range(4):
        at_work.end_worker(index, code, tells=False)
    assert suspects(at_work.plane, fleet(at_work)) == {at_work.key}


def test_one_that_is_going_is_looked_at(at_work):
    at_work.apply("DELETE", at_work.job_path, {"propagationPolicy": "Foreground"})
    assert suspects(at_work.plane, fleet(at_work)) == {at_work.key}


def test_a_settled_job_is_under_no_suspicion(at_work):
    at_work.fail("jobs.delete")
    for index in range(4):
        at_work.end_worker(index)
    at_work.tick()
    assert at_work.end == ("SUCCEEDED", "Completed")
    assert suspects(at_work.plane, fleet(at_work)) == set()


class TestOrphans:
    def test_one_that_no_row_stands_for_is_removed_after_its_grace(self, rested):
        orphan(rested)
        deletes = rested.calls()["kubernetes.jobs.delete"]
        rested.tick(9)
        assert rested.calls()["kubernetes.jobs.delete"] == deletes, "not before its grace is over"
        rested.tick(GRACE_TICKS)
        assert rested.is_clean

    @pytest.mark.parametrize(
        "labels",
        [{"sf-plane": "staging"}, {"sf-key": "e" * 16}, {"sf-key": ""}],
        ids=["another plane's", "of no known job", "without a key"],
    )
    def test_a_strangers_is_left_alone(self, rested, labels):
        orphan(rested, **labels)
        rested.tick(GRACE_TICKS)
        assert len(rested.kubernetes.leftovers().jobs) == 1

    def test_a_list_that_is_not_whole_removes_nothing(self, rested):
        orphan(rested)
        rested.fail("jobs.list")
        rested.tick(GRACE_TICKS)
        assert not fleet(rested).complete
        assert len(rested.kubernetes.leftovers().jobs) == 1

    def test_one_beside_a_job_at_work_goes_and_the_job_stays(self, at_work):
        name = at_work.row["name"]
        at_work.apply("DELETE", at_work.job_path, {"propagationPolicy": "Background"})
        at_work.pass_time(5)
        orphan(at_work)
        at_work.tick(40)
        assert at_work.end == ("FAILED", "JobDeleted")
        assert (at_work.job["phase"], at_work.row["name"]) == ("DONE", name)
        assert at_work.is_clean


class TestSilence:
    def test_a_cluster_that_does_not_answer_hides_no_other(self, at_work):
        silent = "projects/p/locations/europe-west1/clusters/silent"
        at_work.put_silent_cluster()
        at_work.store.commit(
            [Increment(path="clusters/europe-west1_silent", amounts={"jobs": 1}, fields={"name": silent})]
        )
        at_work.events = False
        for index in range(4):
            at_work.end_worker(index, tells=False)
        at_work.tick()
        assert at_work.end == ("SUCCEEDED", "Completed")

    def test_a_list_that_fails_costs_no_job(self, at_work):
        at_work.fail("jobs.list")
        at_work.tick(3)
        assert at_work.end == (None, None)

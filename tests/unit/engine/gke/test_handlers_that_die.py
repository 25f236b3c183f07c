"""A handler comes to its end between two calls; whoever looks next goes on to the same end."""

from __future__ import annotations

import json

import pytest


def word(world):
    name = f"runs/status/{world.key}/{world.row['nonce']}/job.terminal.json"
    return json.loads(world.objects.read("code", name, limit=10**5))["reason"]


def dies_before_saving(world, method):
    """Let the handler die when it has called Kubernetes so, before it saves what it was answered."""

    def dies(name, _args):
        due = name == "commit" and world.calls()[method] > 0
        if due:
            world.store.dies_before = lambda *_: False
        return due

    world.store.dies_before = dies


def dies_after_the_word(world):
    """Let the handler die when it has written the plane's word, before it saves what that stands for."""

    def dies(name, args):
        due = name == "create" and args[1].endswith("/job.terminal.json")
        if due:
            world.objects.dies_after = lambda *_: False
        return due

    world.objects.dies_after = dies


def test_a_create_whose_answer_nobody_saved_is_found_out(gke, killed):
    dies_before_saving(gke, "kubernetes.jobs.create")
    with pytest.raises(killed):
        gke.submit()
    (gke.key,) = gke.store.due(gke.clock.now() + gke.plane.settings.timing.hold, 10)
    assert (gke.row["state"], gke.row.get("target_id")) == ("INTENDED", None)
    gke.tick(3)
    assert gke.row["state"] == "CREATED"
    assert gke.calls()["kubernetes.jobs.create"] == 1, "it is found, not made again"
    for index in range(4):
        gke.end_worker(index)
    gke.tick(4)
    assert (gke.end, gke.job["phase"]) == (("SUCCEEDED", "Completed"), "DONE")


def test_a_create_that_nobody_saved_and_that_has_finished_is_settled_by_its_status(gke, killed):
    dies_before_saving(gke, "kubernetes.jobs.create")
    with pytest.raises(killed):
        gke.submit()
    (gke.key,) = gke.store.due(gke.clock.now() + gke.plane.settings.timing.hold, 10)
    gke.events = False
    gke.pass_time(30)
    for index in range(4):
        gke.end_worker(index)
    gke.tick(2)
    assert gke.end == ("SUCCEEDED", "Completed")
    gke.tick(8)
    assert (gke.job["phase"], gke.is_clean) == ("DONE", True)


def test_a_create_that_was_not_sent_is_sent_by_the_next(gke, killed):
    gke.fail("jobs.create", after=0)
    gke.submit()
    assert gke.row["state"] == "INTENDED"
    gke.faults.clear()
    gke.tick(3)
    assert gke.job["phase"] == "RUNNING"


class TestTheWord:
    """Between the plane's own word and the save that it stands for."""

    def test_of_a_cancel_is_kept_although_the_job_finishes_meanwhile(self, at_work, killed):
        dies_after_the_word(at_work)
        with pytest.raises(killed):
            at_work.cancel()
        assert (at_work.end, word(at_work)) == ((None, None), "Cancelled")
        at_work.events = False
        for index in range(4):
            at_work.end_worker(index)
        at_work.tick()
        assert at_work.end == ("CANCELLED", "Cancelled")
        at_work.tick(4)
        assert (at_work.job["phase"], at_work.is_clean) == ("DONE", True)

    def test_of_a_cancel_is_heard_like_any_marker(self, at_work, killed):
        dies_after_the_word(at_work)
        with pytest.raises(killed):
            at_work.cancel()
        at_work.hear(f"runs/status/{at_work.key}/{at_work.row['nonce']}/job.terminal.json")
        assert at_work.end == ("CANCELLED", "Cancelled")

    def test_of_a_time_out_is_kept(self, gke, killed):
        gke.submit(limits={"run": "10m"})
        dies_after_the_word(gke)
        gke.pass_time(30)
        with pytest.raises(killed):
            gke.tick(14)
        gke.tick(2)
        assert (gke.end, word(gke)) == (("TIMED_OUT", "RunTimeout"), "RunTimeout")

    def test_of_want_of_room_is_kept_although_there_is_room_now(self, a_cluster_world, killed):
        world = a_cluster_world(nodes=0)
        world.submit(limits={"capacity_wait": "10m"})
        dies_after_the_word(world)
        with pytest.raises(killed):
            world.tick(14)
        for _ in range(4):
            world.kubernetes.add_node("default-pool", world.clock.now())
        world.tick(2)
        assert (world.end, word(world)) == (("NO_CAPACITY", "Unschedulable"), "Unschedulable")
        world.tick(4)
        assert (world.job["phase"], world.is_clean) == ("DONE", True)


def test_a_delete_that_nobody_saved_is_sent_again_until_all_is_gone(at_work, killed):
    dies_before_saving(at_work, "kubernetes.jobs.delete")
    with pytest.raises(killed):
        at_work.cancel()
    at_work.tick(5)
    assert (at_work.end[0], at_work.job["phase"], at_work.is_clean) == ("CANCELLED", "DONE", True)

"""Looks that are not taken: at a Job that was just created, and at one that was just seen."""

from __future__ import annotations

from collections import Counter

from runtender.ports import Snapshot


def test_a_job_that_was_just_created_is_not_looked_at(gke):
    gke.submit()
    assert gke.calls() == Counter({"kubernetes.version.get": 1, "kubernetes.jobs.create": 1})


def test_why_its_pods_do_not_come_is_looked_at_in_time(a_cluster_world):
    world = a_cluster_world(nodes=0)
    world.submit()
    world.tick(3)
    assert world.calls()["kubernetes.pods.list"] == 1


def test_a_cancel_that_came_while_it_was_being_created_is_heeded_at_once(gke):
    found: list[Snapshot] = []

    def cancel_once(name, _args):
        if name == "commit" and not found:
            found.extend(gke.store.find("jobs", where={"phase": "PROVISIONING"}))
            if found:
                # Only noted: the cancel's own handler goes no further.
                gke.base.send({"action": "cancel", "run_id": found[0].data["run_id"]}, "m-cancel")
        return False

    gke.store.dies_after = cancel_once
    gke.submit()
    assert found
    assert gke.end == ("CANCELLED", "Cancelled")


def test_the_look_that_settled_a_job_is_the_look_before_its_delete(at_work):
    at_work.pass_time(60)
    for index in range(4):
        at_work.end_worker(index, tells=False)
        at_work.summarise(index)
    before = at_work.calls()
    at_work.tick()
    spent = at_work.calls() - before
    assert at_work.end == ("SUCCEEDED", "Completed")
    assert spent == Counter(
        {"kubernetes.jobs.list": 1, "kubernetes.jobs.get": 1, "kubernetes.jobs.delete": 1}
    )

"""A tick finds what events did not tell, and no single job can keep it from the others."""

from __future__ import annotations

from runtender.engine import Watchdog
from runtender.ports import Update


def test_an_unreadable_job_document_keeps_nobody_else_from_being_looked_at(world):
    receipt = world.submit()
    other = world.send({"config": {**world.config, "run_name": "other"}}, "m-2")
    broken = world.store.get(f"jobs/{receipt.job_keys[0]}")
    world.store.commit([Update(path=broken.path, fields={"phase": "LOST"}, stamp=broken.stamp)])
    world.tick()
    assert world.job(other)["phase"] == "PROVISIONING"
    assert world.compute.counts()["compute.instances.aggregatedList"] == 1


def test_a_lost_terminal_event_is_repaired_by_the_fleet_list(world):
    receipt = world.submit()
    world.start(receipt)
    world.mark(receipt, "started", status="RUNNING")
    row = world.job(receipt)["resources"][-1]
    world.compute.preempt(row["location"], row["name"], world.clock.now())
    world.settle_down(4)
    assert world.job(receipt)["reason"] == "Preempted"


def test_an_idle_tick_costs_two_reads_and_one_list(world):
    reads = world.store.reads
    assert Watchdog(world.plane, world.engine).tick() == 0
    assert world.store.reads - reads == 2, "who is due, and which clusters there are"
    assert world.compute.counts() == {"compute.instances.aggregatedList": 1}

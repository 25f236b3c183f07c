"""A terminal object that says nothing can never be replaced, and still must not keep a job, or change its outcome."""

from __future__ import annotations

import json

import pytest

from runtender.ids import marker_object


def spoil(world, receipt, body=b""):
    nonce = world.job(receipt)["resources"][-1]["nonce"]
    world.objects.create("code", marker_object(receipt.job_keys[0], nonce, 0, "terminal"), body)
    world.engine.step(receipt.job_keys[0])
    return nonce


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b" " * 1_000_000], ids=["empty", "cut", "list", "1 MB"])
def test_it_settles_nothing(world, body):
    receipt = world.submit()
    world.start(receipt)
    world.mark(receipt, "started", status="RUNNING")
    spoil(world, receipt, body)
    assert world.job(receipt)["outcome"] is None


def test_a_cancelled_job_still_ends(world):
    receipt = world.submit()
    world.start(receipt)
    spoil(world, receipt)
    world.start(world.send({"action": "cancel", "run_id": receipt.run_id}, "m-2"))
    assert world.job(receipt)["outcome"] == "CANCELLED"


def test_a_worker_that_did_all_its_work_is_settled_by_its_summary(world):
    receipt = world.submit()
    world.start(receipt)
    world.mark(receipt, "started", status="RUNNING")
    nonce = spoil(world, receipt)
    summary = {"nonce": nonce, "n_cells": 4, "n_ok": 4, "n_error": 0, "complete": True}
    folder = world.job(receipt)["plan"]["cells_uri"].removeprefix("gs://wh/")
    world.objects.put("wh", f"{folder}/{nonce}/000000.summary.json", json.dumps(summary).encode())
    row = world.job(receipt)["resources"][-1]
    world.compute.preempt(row["location"], row["name"], world.clock.now())
    world.settle_down(30)
    job = world.job(receipt)
    assert (job["outcome"], job["reason"], job["phase"]) == ("SUCCEEDED", "SettledBySummary", "DONE")

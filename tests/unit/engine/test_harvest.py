"""What one run measured, the next one of its kind is planned with."""

from __future__ import annotations

import json


def finish(world, receipt, **measured):
    world.start(receipt)
    world.mark(receipt, "started", status="RUNNING")
    job = world.job(receipt)
    nonce = job["resources"][-1]["nonce"]
    summary = {"nonce": nonce, "n_cells": 4000, "n_ok": 4000, "n_error": 0, "complete": True, **measured}
    folder = job["plan"]["cells_uri"].removeprefix("gs://wh/")
    world.objects.put("wh", f"{folder}/{nonce}/000000.summary.json", json.dumps(summary).encode())
    world.mark(receipt, "terminal", status="SUCCEEDED", exit_code=0)
    world.settle_down()


def config(world, name):
    compute = {"profile": {"mode": "always"}}
    return {**world.config, "run_name": name, "compute": compute}


def test_measured_cells_size_the_next_run(world):
    first = world.send({"config": config(world, "first")})
    finish(world, first, cell_seconds=8000.0, peak_rss_bytes=3 * 2**30)
    assert world.store.find("profiles")
    second = world.send({"config": config(world, "second")}, "m-2")
    assert "memory" in world.job(second)["plan"]["resource_plan"]["slot"]["measured"]


def test_a_summary_without_figures_keeps_nothing(world):
    finish(world, world.send({"config": config(world, "first")}))
    assert world.store.find("profiles") == []

"""The keys that users' queries know stand in the job, and nothing but its own story is in them."""

from __future__ import annotations


def test_a_placement_leaves_its_handle_and_a_run_its_story(world):
    receipt = world.submit()
    world.start(receipt)
    placed = world.job(receipt)["telemetry"]
    assert set(placed) == {"gce_instance", "probe_handle"}
    assert placed["probe_handle"]["resource_name"] == (
        f"projects/p/zones/us-central1-a/instances/{placed['gce_instance']['instance_name']}"
    )
    world.finish(receipt)
    told = world.job(receipt)["telemetry"]
    assert set(told["platform"]) == {"provision_s", "execute_s", "total_wall_s"}
    assert "failure" not in told
    assert "capacity" not in told
    assert set(world.run(receipt)["telemetry"]["sizing"]) == {"statistical"}


def test_a_failure_says_why(world):
    receipt = world.submit()
    world.start(receipt)
    world.finish(receipt, status="FAILED", exit_code=3, detail="ValueError: no")
    assert world.job(receipt)["telemetry"]["failure"] == {"type": "ExitCode", "message": "ValueError: no"}

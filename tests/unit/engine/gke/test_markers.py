"""What lies beside a job with many workers: only the plane's own word on the whole job ends it."""

from __future__ import annotations

import pytest

SUCCESS = {"status": "SUCCEEDED", "exit_code": 0}


@pytest.mark.parametrize("writer", ["bootstrap", "guest", "plane"])
def test_a_worker_that_tells_its_end_too_soon_ends_nothing(at_work, writer):
    at_work.mark(0, "terminal", **SUCCESS | {"writer": writer, "reason": "Cancelled"})
    at_work.tick(2)
    assert at_work.end == (None, None)
    assert at_work.job["phase"] == "RUNNING"


@pytest.mark.parametrize(
    "body",
    [
        SUCCESS,
        {"status": "FAILED", "exit_code": 1},
        {**SUCCESS, "writer": "guest"},
        {"status": "RUNNING", "writer": "plane"},
        {"status": "INTERRUPTED", "writer": "someone", "reason": "Cancelled"},
        {"note": "x" * 70_000, "status": "INTERRUPTED", "writer": "plane", "reason": "Cancelled"},
    ],
    ids=["a success", "a failure", "a machine's word", "no end", "nobody's word", "too large"],
)
class TestSpoilt:
    """Something stands where only the plane writes, and nothing can ever take its place."""

    def test_it_ends_nothing(self, at_work, body):
        at_work.mark(None, "terminal", **body)
        at_work.tick(2)
        assert at_work.end == (None, None)
        for index in range(4):
            at_work.end_worker(index)
        at_work.tick()
        assert at_work.end == ("SUCCEEDED", "Completed")

    def test_it_keeps_no_job_from_being_cancelled(self, at_work, body):
        at_work.mark(None, "terminal", **body)
        at_work.cancel()
        assert at_work.end == ("CANCELLED", "Cancelled")
        at_work.tick(4)
        assert (at_work.job["phase"], at_work.is_clean) == ("DONE", True)


def test_the_markers_of_another_try_do_nothing(at_work):
    before = at_work.job["version"], at_work.calls()
    at_work.mark(0, "terminal", nonce="f" * 16, **SUCCESS)
    at_work.mark(None, "terminal", nonce="f" * 16, writer="plane", reason="Cancelled", status="INTERRUPTED")
    at_work.mark(0, "started", nonce="f" * 16, status="RUNNING")
    assert (at_work.job["version"], at_work.calls()) == before
    assert at_work.end == (None, None)


def test_the_plane_leaves_no_copy_where_readers_look_for_a_vms_end(at_work):
    at_work.cancel()
    assert at_work.objects.stat("code", f"runs/gce-status/{at_work.row['name']}.json") is None


def test_a_start_is_the_first_workers(gke):
    gke.events = False
    gke.submit()
    gke.pass_time(30)
    first = gke.clock.now()
    gke.pass_time(30)
    gke.hear(f"runs/status/{gke.key}/{gke.row['nonce']}/2.started.json")
    assert gke.job["phase"] == "RUNNING"
    assert gke.job["started_at"] <= first

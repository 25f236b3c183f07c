"""What is read of many workers at once, and what is kept of their last words."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from runtender.engine.crowd import Crowd
from runtender.errors import Retryable
from runtender.wire.documents import job_from_document

FAILURES = 25


@pytest.fixture
def looked_at(at_work):
    """The world, its job and row, and who looks at them."""
    job = job_from_document(at_work.job)
    return at_work, job, job.resources[-1], Crowd(at_work.plane)


@pytest.fixture
def big(a_cluster_world):
    """A job of 25 workers, all at work."""
    world = a_cluster_world(nodes=FAILURES)
    world.submit({**world.config, "compute": {"workers": FAILURES}})
    world.pass_time(30)
    return world


class TestSummary:
    def test_nobodys_is_none(self, looked_at):
        _, job, row, crowd = looked_at
        assert crowd.summary(job, row) is None

    def test_it_is_complete_with_the_last_workers(self, looked_at):
        world, job, row, crowd = looked_at
        for index in range(3):
            world.summarise(index, ok=3, errors=1)
        assert not crowd.summary(job, row).complete
        world.summarise(3)
        whole = crowd.summary(job, row)
        assert (whole.n_cells, whole.n_ok, whole.n_error, whole.complete) == (14, 11, 3, True)

    def test_what_is_no_summary_of_this_try_is_left_out(self, looked_at):
        world, job, row, crowd = looked_at
        body = {"n_cells": 9, "n_ok": 9, "n_error": 0, "complete": True, "nonce": row.nonce}
        odd = {
            "000004.summary.json": body,
            "1.summary.json": body,
            "000001.summary.json.tmp": body,
            "cells/000002.summary.json": body,
            "000002.summary.json": {**body, "nonce": "f" * 16},
            "000003.summary.json": {**body, "n_ok": "all"},
        }
        for name, content in odd.items():
            world.put_result(f"{row.nonce}/{name}", json.dumps(content).encode())
        world.put_result(f"{'f' * 16}/000001.summary.json", json.dumps(body).encode())
        assert crowd.summary(job, row) is None
        world.summarise(0)
        assert crowd.summary(job, row).n_cells == 2

    def test_many_are_read_side_by_side(self, big):
        for index in range(FAILURES):
            big.summarise(index, ok=index)
        job = job_from_document(big.job)
        whole = Crowd(big.plane).summary(job, job.resources[-1])
        assert whole is not None
        assert (whole.n_ok, whole.complete) == (sum(range(FAILURES)), True)

    @pytest.mark.parametrize("count", [4, FAILURES])
    def test_one_that_cannot_be_read_is_no_summary_at_all(self, big, count):
        for index in range(count):
            big.summarise(index)
        job = job_from_document(big.job)

        def breaks(name, args):
            if name == "read":
                raise Retryable("no answer")
            return False

        big.objects.dies_before = breaks
        with pytest.raises(Retryable):
            Crowd(big.plane).summary(job, job.resources[-1])


class TestPods:
    def test_they_are_read_page_by_page(self, a_cluster_world):
        world = a_cluster_world(nodes=120)
        world.submit({**world.config, "compute": {"workers": 120}})
        world.pass_time(20)
        job = job_from_document(world.job)
        before = world.calls()
        seen = Crowd(world.plane).pods(job, job.resources[-1])
        assert seen is not None
        assert sorted(pod.index for pod in seen.pods if pod.index is not None) == list(range(120))
        assert seen.started_at is not None
        assert (world.calls() - before)["kubernetes.pods.list"] == 2, "1 + W/100"

    def test_a_page_that_fails_is_no_observation(self, looked_at):
        world, job, row, crowd = looked_at
        world.fail("pods.list")
        assert crowd.pods(job, row) is None

    def test_warnings_that_fail_are_done_without(self, looked_at):
        world, job, row, crowd = looked_at
        world.fail("events.list")
        assert len(crowd.pods(job, row).pods) == 4

    def test_pages_that_take_too_long_are_no_observation(self, a_cluster_world):
        world = a_cluster_world(nodes=120)
        world.submit({**world.config, "compute": {"workers": 120}})
        job = job_from_document(world.job)
        world.delay("pods.list", 31)
        assert Crowd(world.plane).pods(job, job.resources[-1]) is None


class TestLogs:
    def kept(self, world, row):
        name = f"runs/logs/{world.key}/{row.nonce}/pods.log"
        return (world.objects.read("code", name, limit=10**6) or b"").decode()

    def say(self, world, index, words):
        world.kubernetes.pod_log(world.pods[index].uid, words, world.clock.now())

    def test_pods_that_did_not_do_well_have_a_block_each(self, looked_at):
        world, job, row, crowd = looked_at
        for index in range(4):
            self.say(world, index, f"words of {index}\n".encode())
        world.end_worker(0)
        world.end_worker(1, 3)
        crowd.keep_logs(job, row)
        kept = self.kept(world, row)
        assert kept.count("--- pod ") == 3
        assert "words of 0" not in kept
        assert all(f"words of {index}" in kept for index in (1, 2, 3))

    def test_secrets_that_a_pod_said_are_not_kept(self, looked_at):
        world, job, row, crowd = looked_at
        self.say(world, 1, b"sent with Bearer abc.def-0123456789\n")
        world.end_worker(1, 3)
        crowd.keep_logs(job, row)
        assert "sent with [redacted]" in self.kept(world, row)

    def test_of_many_some_are_kept_and_the_others_counted(self, big):
        job = job_from_document(big.job)
        row = job.resources[-1]
        for index in range(FAILURES):
            self.say(big, index, b"y" * 5000)
        before = big.calls()
        Crowd(big.plane).keep_logs(job, row)
        kept = self.kept(big, row)
        assert (big.calls() - before)["kubernetes.pods.log.get"] == 20
        assert kept.count("--- pod ") == 20
        assert kept.endswith("--- 5 more pods ---")
        assert len(kept) < 20 * 1600

    def test_what_fails_is_left_out(self, looked_at):
        world, job, row, crowd = looked_at
        world.fail("pods.log.get")
        crowd.keep_logs(job, row)
        world.faults.clear()
        world.fail("pods.list")
        crowd.keep_logs(job, row)
        world.faults.clear()
        assert self.kept(world, row) == ""

    def test_what_cannot_be_stored_costs_nothing(self, looked_at):
        world, job, row, crowd = looked_at
        self.say(world, 0, b"words\n")
        world.objects.broken = {"code"}
        crowd.keep_logs(job, row)
        world.objects.broken = set()
        assert self.kept(world, row) == ""

    def test_no_more_time_is_spent_on_them_than_on_one_call(self, big):
        job = job_from_document(big.job)
        big.fail("pods.log.get", after=10)
        began = big.clock.now()
        Crowd(big.plane).keep_logs(job, job.resources[-1])
        assert big.clock.now() - began <= timedelta(seconds=60)

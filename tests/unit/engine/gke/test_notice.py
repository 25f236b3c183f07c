"""Events of many workers at about the same time: each costs little, one looks for all, and none is missed in the end."""

from __future__ import annotations

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from runtender.engine import Engine, Watchdog
from runtender.ids import MarkerName, marker_object
from runtender.ports import ApiAnswer
from runtender.runtimes.gke_job import GkeJob

GET = "kubernetes.jobs.get"
CLUSTER = {
    "name": "standing",
    "location": "us-central1",
    "status": "RUNNING",
    "endpoint": "10.0.0.1",
    "selfLink": "https://container.googleapis.com/v1/projects/p/locations/us-central1/clusters/standing",
    "currentMasterVersion": "1.34.1",
}
# What a job that has just begun has called.
_BEFORE = {
    "container.projects.locations.clusters.get",
    "kubernetes.version.get",
    "kubernetes.jobs.create",
    "kubernetes.jobs.list",
    "kubernetes.pods.list",
    "kubernetes.events.list",
}


class OneJob:
    """The API of a cluster with one Job: a thousand pods are more than a simulated cluster plays in a test."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.job: dict | None = None
        self.ended: set[int] = set()
        self.calls: Counter[str] = Counter()
        self.is_down = False

    def send(self, request):
        self.calls[request.method_id] += 1
        if self.is_down:
            return ApiAnswer(status=503)
        answers = {
            "container.projects.locations.clusters.get": lambda: CLUSTER,
            "kubernetes.version.get": lambda: {"minor": "34"},
            "kubernetes.jobs.create": lambda: self._create(request.body),
            "kubernetes.jobs.get": self._shown,
            "kubernetes.jobs.list": lambda: {"items": [self._shown()] if self.job else []},
            "kubernetes.jobs.delete": self._delete,
        }
        body = answers.get(request.method_id, lambda: {"items": []})()
        if body is None:
            return ApiAnswer(status=404, body={"kind": "Status", "reason": "NotFound"})
        return ApiAnswer(status=200, body=body)

    def _create(self, body):
        metadata = {**body["metadata"], "uid": "uid-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
        self.job = {**body, "metadata": metadata}
        return self.job

    def _delete(self):
        self.job = None
        return {"kind": "Status"}

    def _shown(self):
        if self.job is None:
            return None
        done = len(self.ended)
        status = {"active": self.workers - done, "succeeded": done, "startTime": "2026-01-01T00:00:00Z"}
        if done == self.workers:
            status["conditions"] = [{"type": "Complete", "status": "True"}]
        return {**self.job, "status": status}


class Storm:
    """A job with many workers, and its events."""

    def __init__(self, world, workers, killed):
        self.world, self.workers, self.killed = world, workers, killed
        self.api = OneJob(workers)
        self.clock, self.store = world.clock, world.store
        world.plane = self.plane = replace(
            world.plane,
            settings=replace(world.plane.settings, gke_cluster="standing"),
            runtimes={"gke": GkeJob()},
            apis={"gke": self.api},
        )
        world.engine = self.engine = Engine(self.plane)
        config = {
            "run_name": "flights",
            "python_runtime": "gke",
            "data": {"source_table": "gs://wh/panel.csv"},
            "models": ["theta"],
            "compute": {"workers": workers},
        }
        receipt = world.submit(config=config)
        world.start(receipt)
        (self.key,) = receipt.job_keys
        self.nonce = self.job["resources"][-1]["nonce"]

    @property
    def job(self):
        return self.world.document(f"jobs/{self.key}")

    @property
    def end(self):
        return self.job["outcome"], self.job["reason"]

    def where(self, index, stage):
        return MarkerName(job_key=self.key, nonce=self.nonce, index=index, stage=stage)

    def start(self):
        body = json.dumps({"status": "RUNNING"}).encode()
        self.world.objects.create("code", marker_object(self.key, self.nonce, 0, "started"), body)
        for index in range(self.workers):
            self.engine.notice(self.where(index, "started"))
        assert self.job["phase"] == "RUNNING"
        assert self.job["plan"]["worker_count"] == self.workers
        self.clock.sleep(60)

    def end_worker(self, index):
        self.api.ended.add(index)
        self.engine.notice(self.where(index, "terminal"))

    def tick(self):
        self.clock.sleep(60 - self.clock.now().second % 60)
        return Watchdog(self.plane, self.engine).tick()


@pytest.fixture
def storm(new_world, killed):
    """Make a job with so many workers that have all started: `storm(1000)`."""

    def make(workers):
        made = Storm(new_world(), workers, killed)
        made.start()
        return made

    return make


def in_any_order(count):
    return random.Random(7).sample(range(count), count)


def test_a_thousand_starts_cost_one_look(new_world, killed):
    storm = Storm(new_world(), 1000, killed)
    looks, reads = storm.api.calls[GET], storm.store.reads
    storm.start()
    assert storm.api.calls[GET] - looks <= 1
    assert storm.store.reads - reads <= 1000 + 10


def test_a_thousand_ends_in_a_minute_cost_a_look_every_ten_seconds(storm):
    world = storm(1000)
    looks, reads, commits = world.api.calls[GET], world.store.reads, world.store.commits
    for index in in_any_order(1000):
        world.clock.sleep(0.06)
        world.end_worker(index)
    seen = world.api.calls[GET] - looks
    assert 5 <= seen <= 7
    assert world.store.reads - reads <= 1000 + 2 * seen, "one read each, and what a look takes"
    assert world.store.commits - commits <= 2 * seen
    assert world.api.calls.keys() <= {GET, *_BEFORE}
    world.tick()
    assert world.end == ("SUCCEEDED", "Completed")


def test_ends_that_nobody_looked_at_are_found_by_the_next_tick_without_its_list(storm):
    world = storm(1000)
    for index in in_any_order(1000):
        world.end_worker(index)
    assert world.end == (None, None), "all came at one moment, and the first looked for all"
    world.clock.sleep(11)
    assert world.store.due(world.clock.now(), 10) == [world.key], "due by itself: a list may fail"
    world.tick()
    assert world.end == ("SUCCEEDED", "Completed")


def test_a_handler_that_dies_between_its_claim_and_its_look_is_no_loss(storm):
    world = storm(1000)
    commits, sending = world.store.commits, world.api.send

    def die(_request):
        raise world.killed

    world.api.send = die
    with pytest.raises(world.killed):
        world.end_worker(0)
    world.api.send = sending
    assert world.store.commits == commits + 1
    for index in range(1, 1000):
        world.end_worker(index)
    assert world.end == (None, None)
    world.tick()
    assert world.end == ("SUCCEEDED", "Completed")


@pytest.mark.parametrize("workers", [1, 4, 32])
def test_few_workers_are_settled_at_the_last_end(storm, workers):
    world = storm(workers)
    for index in in_any_order(workers):
        assert world.end == (None, None)
        world.end_worker(index)
    assert world.end == ("SUCCEEDED", "Completed")


@pytest.mark.parametrize("workers", [4, 100])
def test_an_end_that_the_status_shows_a_moment_later_is_settled_by_the_next_tick(storm, workers):
    world = storm(workers)
    for index in range(workers):
        world.clock.sleep(1)
        world.engine.notice(world.where(index, "terminal"))
    world.api.ended = set(range(workers))
    world.clock.sleep(11)
    assert world.store.due(world.clock.now(), 10) == [world.key]
    world.tick()
    assert world.end == ("SUCCEEDED", "Completed")


@pytest.mark.parametrize("workers", [32, 1000])
def test_many_handlers_at_one_moment_get_in_nobodys_way(storm, workers):
    world = storm(workers)
    looks = world.api.calls[GET]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(world.end_worker, in_any_order(workers)))
    few = workers <= 32
    assert world.api.calls[GET] - looks <= (10 * workers if few else 40)
    world.tick()
    assert world.end == ("SUCCEEDED", "Completed")


def test_events_after_the_end_cost_a_read_each(storm):
    world = storm(1000)
    world.api.ended = set(range(1000))
    world.end_worker(0)
    assert world.end == ("SUCCEEDED", "Completed")
    for _ in range(3):
        calls, reads = sum(world.api.calls.values()), world.store.reads
        for index in range(100):
            world.engine.notice(world.where(index, "terminal"))
        assert (sum(world.api.calls.values()), world.store.reads) == (calls, reads + 100)
        world.tick()
    assert world.job["phase"] == "DONE"


def test_a_storm_while_the_cluster_is_down_is_made_good_when_it_is_back(storm):
    world = storm(1000)
    world.api.is_down = True
    for index in in_any_order(1000):
        world.clock.sleep(0.06)
        world.end_worker(index)
    world.tick()
    assert world.end == (None, None)
    world.api.is_down = False
    world.tick()
    assert world.end == ("SUCCEEDED", "Completed")

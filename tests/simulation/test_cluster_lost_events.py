"""No single event of a job on a cluster is needed: whichever is lost, it ends as it should, and in time (I7)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.local.simulation.clusters import ClusterSetup
from runtender.local.simulation.pods import PodBehaviour
from runtender.local.simulation.world import CLUSTER_CONFIG
from runtender.model import Outcome, Reason

TICK = timedelta(minutes=1)
MINUTES = timedelta(minutes=1)
# The started and terminal markers of four workers, and every tick of the run.
EVENTS = range(1, 16)


def told_without(a_world, lost, pods, minutes):
    """Play a world in which one event never arrives, until it rests; lost counts from the submit."""
    world = a_world(cluster=ClusterSetup(pods=pods))
    world.weather.arriving.extend([[timedelta()]] * lost + [[]])
    world.submit(CLUSTER_CONFIG)
    world.run(minutes * MINUTES)
    world.settle()
    return world


def longest_watch(world):
    """How long a job may be left alone; wakes are spread by up to a tenth."""
    return 1.1 * world.settings.timing.watch_interval + 2 * TICK


@pytest.mark.parametrize("lost", EVENTS)
def test_a_run_whose_workers_do_well_ends_within_two_ticks_of_the_last(a_world, lost):
    world = told_without(a_world, lost, PodBehaviour(work_s=200), minutes=20)
    assert world.job.outcome is Outcome.SUCCEEDED
    workers_end = world.job.started_at + timedelta(seconds=200)
    # The Job stays, and the list of the fleet shows that it has ended.
    assert world.job.ended_at - workers_end <= 2 * TICK + timedelta(seconds=5)


@pytest.mark.parametrize("lost", EVENTS)
def test_a_run_that_takes_too_long_ends_within_two_ticks_of_its_limit(a_world, lost):
    world = told_without(a_world, lost, PodBehaviour(work_s=3000), minutes=30)
    assert (world.job.outcome, world.job.reason) == (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT)
    assert world.job.ended_at - world.job.deadlines.run <= 2 * TICK


@pytest.mark.parametrize("lost", EVENTS)
def test_a_run_whose_job_somebody_deletes_ends_within_the_watch_interval_and_two_ticks(a_world, lost):
    world = a_world(cluster=ClusterSetup(pods=PodBehaviour(work_s=1000)))
    world.weather.arriving.extend([[timedelta()]] * lost + [[]])
    world.submit(CLUSTER_CONFIG)
    world.run(2 * MINUTES)
    world.cloud.cluster.people.delete_job(world.cloud.cluster.jobs()[0])
    deleted_at = world.now
    world.run(16 * MINUTES)
    world.settle()
    assert (world.job.outcome, world.job.reason) == (Outcome.FAILED, Reason.JOB_DELETED)
    assert world.job.ended_at - deleted_at <= longest_watch(world)


@pytest.mark.parametrize("lost", EVENTS)
def test_a_cancel_ends_a_run_whichever_other_event_is_lost(a_world, lost):
    world = a_world(cluster=ClusterSetup(pods=PodBehaviour(work_s=900)))
    world.submit(CLUSTER_CONFIG)
    world.run(2 * MINUTES)
    world.weather.arriving.extend([[timedelta()]] * lost + [[]])
    world.cancel(world.job.run_id)
    asked_at = world.now
    world.run(3 * MINUTES)
    world.settle()
    assert world.job.outcome is Outcome.CANCELLED
    assert world.job.ended_at - asked_at <= 2 * TICK

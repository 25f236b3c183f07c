"""Rows of the specification on how a run ends that only a whole world can show."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.ids import marker_object
from runtender.local.compute.stock import Stock
from runtender.local.scenario import Stockout
from runtender.local.simulation.cloud import START
from runtender.local.simulation.guests import Behaviour, Death
from runtender.local.simulation.weather import BROKEN_OFF, DELETE, FORBIDDEN, GET, UNAVAILABLE
from runtender.local.simulation.world import ENVIRONMENT
from runtender.model import CleanupState, Outcome, Phase, Reason
from runtender.settings import Settings

MINUTE = timedelta(minutes=1)
SUCCESS = (Outcome.SUCCEEDED, Reason.COMPLETED)
FAILURE = b'{"status": "FAILED", "exit_code": 9}'


def ending(job):
    return job.outcome, job.reason


def terminal(job, row):
    return marker_object(job.job_key, row.nonce, 0, "terminal")


def stop_now(world):
    machine = world.cloud.machines()[0]
    assert world.cloud.zones.core.preempt(machine.order.zone, machine.order.name, world.now)


@pytest.mark.parametrize((), [pytest.param(id="acceptance-Z5 another placement")])
def test_the_marker_of_an_earlier_placement_is_not_the_later_ones(a_world):
    world = a_world(stock=Stock([Stockout(placement=0)], opened_at=START))
    world.submit()
    world.run(2 * MINUTE)
    world.cloud.write_object("code", terminal(world.job, world.job.resources[0]), FAILURE)
    world.run(MINUTE)
    assert world.job.phase is Phase.RUNNING
    world.settle()
    assert ending(world.job) == SUCCESS


@pytest.mark.parametrize((), [pytest.param(id="acceptance-Z5 another attempt")])
def test_the_marker_of_an_earlier_attempt_is_not_the_later_ones(a_world):
    world = a_world(stock=Stock([Stockout(attempt=1)], opened_at=START))
    world.submit(limits={"capacity_wait": "2m"})
    world.run(5 * MINUTE)
    world.submit(force=True)
    world.run(2 * MINUTE)
    first, second = world.jobs
    assert (first.outcome, second.phase) == (Outcome.NO_CAPACITY, Phase.RUNNING)
    world.cloud.write_object("code", terminal(first, first.resources[0]), FAILURE)
    world.run(MINUTE)
    world.settle()
    assert ending(world.jobs[1]) == SUCCESS


@pytest.mark.parametrize(
    "delay",
    [timedelta(minutes=5), timedelta(minutes=20)],
    ids=["acceptance-Z6", "acceptance-Z6 after the end"],
)
def test_a_started_event_that_comes_late_takes_nothing_back(a_world, delay):
    world = a_world()
    world.weather.arriving.extend([[timedelta()], [delay]])
    world.submit()
    world.run(6 * MINUTE)
    assert world.job.outcome is Outcome.SUCCEEDED
    world.run(20 * MINUTE)
    world.settle()
    assert ending(world.job) == SUCCESS
    assert [row.phase for row in world.job.history][-2:] == [Phase.STOPPING, Phase.DONE]


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param([], id="acceptance-Z7 the marker first"),
        pytest.param(
            [[timedelta()], [timedelta()], [timedelta(minutes=3)]], id="acceptance-Z7 the tick first"
        ),
        pytest.param([[timedelta()], [timedelta()], []], id="acceptance-Z7 the tick alone"),
    ],
)
def test_a_success_is_one_whether_the_marker_or_the_missing_machine_is_noticed_first(a_world, lost):
    world = a_world(behaviour=Behaviour(work_s=25))
    world.weather.arriving.extend(lost)
    world.submit()
    world.run(6 * MINUTE)
    world.settle()
    assert ending(world.job) == SUCCESS


@pytest.mark.parametrize((), [pytest.param(id="acceptance-Z8")])
def test_a_preempted_machine_without_a_word_is_settled_by_the_next_ticks(a_world):
    world = a_world(behaviour=Behaviour(mute_when_stopped=True, work_s=900))
    world.submit()
    world.run(3 * MINUTE)
    stop_now(world)
    struck = world.now
    while world.job.outcome is None:
        world.run(MINUTE)
    assert ending(world.job) == (Outcome.FAILED, Reason.PREEMPTED)
    # The machine has half a minute or two to go down; from then on two sightings are needed.
    assert world.job.ended_at - struck <= timedelta(minutes=2 + 2)
    world.settle()


@pytest.mark.parametrize((), [pytest.param(id="acceptance-Z9")])
def test_a_refused_delete_stays_in_teardown_and_is_told(a_world):
    world = a_world(settings=Settings.from_env({**ENVIRONMENT, "SF_GUEST_SELF_DELETE": "false"}))
    world.submit()
    world.run(2 * MINUTE)
    world.weather.plan(DELETE, FORBIDDEN, times=4)
    world.cancel(world.job.run_id)
    world.run(6 * MINUTE)
    assert (world.job.outcome, world.job.phase) == (Outcome.CANCELLED, Phase.STOPPING)
    assert world.job.cleanup.state is CleanupState.STUCK
    assert "403" in world.job.cleanup.reason
    world.settle()
    assert (world.job.outcome, world.job.cleanup.state) == (Outcome.CANCELLED, CleanupState.DONE)


@pytest.mark.parametrize(
    ("answer", "times"),
    [
        pytest.param(UNAVAILABLE, 1, id="acceptance-Z15"),
        pytest.param(UNAVAILABLE, 30, id="acceptance-Z15 for a while"),
        pytest.param(BROKEN_OFF, 30, id="acceptance-Z15 no answer"),
        pytest.param(FORBIDDEN, 30, id="acceptance-Z15 403"),
    ],
)
@pytest.mark.parametrize("method", [GET, "storage.objects.list", "compute.zoneOperations.get"])
def test_a_look_that_fails_ends_no_healthy_run(a_world, method, answer, times):
    world = a_world(behaviour=Behaviour(work_s=900))
    world.weather.plan(method, answer, times=times)
    world.submit()
    world.run(12 * MINUTE)
    assert world.job.outcome is None
    world.settle()
    assert ending(world.job) == SUCCESS


@pytest.mark.parametrize("death", list(Death))
def test_a_shell_that_dies_is_found_by_a_deadline(a_world, death):
    world = a_world(behaviour=Behaviour(dies=death))
    world.submit()
    world.run(30 * MINUTE)
    world.settle()
    right = {
        Death.BEFORE_START: (Outcome.FAILED, Reason.BOOT_TIMEOUT),
        Death.AT_WORK: (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT),
        Death.BEFORE_STORING: SUCCESS,
    }
    assert ending(world.job) == right[death]

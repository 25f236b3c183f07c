"""Cases that once went wrong somewhere, each told from beginning to end in a simulated world.

Every step of every world here is also watched by the onlooker's rules, and each world has to come to rest.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from runtender.ids import marker_object
from runtender.local.compute.stock import Stock
from runtender.local.scenario import Shape, Stockout
from runtender.local.simulation.cloud import START
from runtender.local.simulation.guests import Behaviour, Death
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.weather import (
    BROKEN_OFF,
    DELETE,
    FORBIDDEN,
    INSERT,
    UNAVAILABLE,
)
from runtender.local.simulation.world import ENVIRONMENT
from runtender.model import CleanupState, Outcome, Phase, Reason, ResourceState
from runtender.settings import Settings


def seconds(number):
    return timedelta(seconds=number)


def minutes(number):
    return timedelta(minutes=number)


def settings(**changes):
    return Settings.from_env({**ENVIRONMENT, **{name: str(value) for name, value in changes.items()}})


def dry(**rule):
    return Stock([Stockout(**rule)], opened_at=START)


def ending(world):
    return world.job.outcome, world.job.reason


def inserts(world):
    """How many machines were ever begun for our jobs."""
    return len(world.cloud.onlooker.sent)


def terminal(world, row):
    return marker_object(world.job.job_key, row.nonce, 0, "terminal")


def is_a_terminal_upload(request):
    return request.query.get("name", "").endswith("terminal.json")


def test_a_cancel_while_the_insert_is_pending_leaves_nothing_and_starts_no_container(a_world):
    world = a_world(settings=settings(SF_PROVISION_WAIT_S=0))
    world.submit()
    world.run(seconds(2))
    assert world.job.resources[0].operation is not None
    world.cancel(world.job.run_id)
    world.run(seconds(2))
    assert ending(world) == (Outcome.CANCELLED, Reason.CANCELLED)
    world.settle()
    started = marker_object(world.job.job_key, world.job.resources[0].nonce, 0, "started")
    assert world.cloud.read_object("code", started) is None


@pytest.mark.parametrize("answer", [UNAVAILABLE, BROKEN_OFF], ids=["503", "no answer"])
def test_a_machine_that_appears_a_minute_after_the_error_is_the_only_one(a_world, answer):
    world = a_world()
    world.weather.plan(INSERT, answer, late=seconds(60))
    world.submit()
    world.run(minutes(10))
    world.settle()
    assert ending(world) == (Outcome.SUCCEEDED, Reason.COMPLETED)
    assert inserts(world) == len(world.job.resources) == 1


def test_refused_deletes_after_success_show_as_stuck_and_are_repeated_until_done(a_world):
    world = a_world(settings=settings(SF_GUEST_SELF_DELETE="false"))
    world.weather.plan(DELETE, FORBIDDEN, times=5)
    world.submit()
    cleanups: list[tuple] = []
    while not cleanups or world.job.phase is not Phase.DONE:
        world.run(minutes(1))
        if world.job.outcome is not None:
            cleanups.append((world.job.outcome, world.job.cleanup.state))
    assert list(dict.fromkeys(cleanups)) == [
        (Outcome.SUCCEEDED, CleanupState.PENDING),
        (Outcome.SUCCEEDED, CleanupState.STUCK),
        (Outcome.SUCCEEDED, CleanupState.DONE),
    ]
    world.settle()


def test_a_machine_that_stops_at_once_is_a_stock_out(a_world):
    world = a_world(stock=dry(zone="us-central1-a", shape=Shape.LATE))
    world.submit()
    world.run(minutes(12))
    world.settle()
    assert ending(world) == (Outcome.SUCCEEDED, Reason.COMPLETED)
    assert [row.location for row in world.job.resources] == ["us-central1-a", "us-central1-b"]


@pytest.mark.parametrize("self_delete", ["true", "false"])
def test_an_image_that_fails_at_once_is_no_stock_out(a_world, self_delete):
    world = a_world(
        settings=settings(SF_GUEST_SELF_DELETE=self_delete), behaviour=Behaviour(boot_s=1, pulls=False)
    )
    world.submit()
    world.run(minutes(5))
    world.settle()
    assert ending(world) == (Outcome.FAILED, Reason.IMAGE_PULL)
    assert inserts(world) == 1


def test_the_next_placement_has_a_request_id_and_a_nonce_of_its_own(a_world):
    world = a_world(stock=dry(placement=0))
    world.submit()
    world.run(minutes(2))
    first, second = world.job.resources
    assert first.state is ResourceState.GONE
    assert (first.nonce, first.request_id) != (second.nonce, second.request_id)
    assert len({first.nonce, second.nonce}) == len({first.request_id, second.request_id}) == 2
    world.settle()


def test_an_empty_object_settles_nothing_and_a_second_notification_does(a_world):
    world = a_world(behaviour=Behaviour(work_s=3000))
    world.submit()
    world.run(minutes(2))
    name = terminal(world, world.job.resources[0])
    world.cloud.write_object("code", name, b"")
    world.run(seconds(1))
    assert world.job.phase is Phase.RUNNING
    world.cloud.write_object("code", name, json.dumps({"status": "FAILED", "exit_code": 3}).encode())
    world.run(seconds(1))
    assert ending(world) == (Outcome.FAILED, Reason.EXIT_CODE)
    world.settle()


def test_a_late_marker_of_placement_one_says_nothing_while_placement_two_runs(a_world):
    world = a_world(stock=dry(placement=0))
    world.submit()
    world.run(minutes(2))
    first, second = world.job.resources
    assert world.job.phase is Phase.RUNNING
    world.cloud.write_object("code", terminal(world, first), b'{"status": "FAILED", "exit_code": 9}')
    world.run(minutes(1))
    assert (world.job.phase, second.state) == (Phase.RUNNING, ResourceState.CREATED)
    world.settle()
    assert ending(world) == (Outcome.SUCCEEDED, Reason.COMPLETED)


def step(world, **fate):
    """Have the job looked at now, by a handler of this fate."""
    world.publish({"action": "step", "job_key": world.job.job_key})
    (delivery,) = [one for one in world.due() if one.subscription.topic == world.settings.submit_topic]
    return world.deliver(delivery, Fate(**fate))


def point_before(a_world, call, **parts):
    """Find where a handler that looks at an overdue run is about to make this call."""
    world = overdue(a_world, **parts)
    calls = step(world).calls
    return 2 * calls.index(call)


def overdue(a_world, **parts):
    """A run whose worker needs ten seconds longer than it may, at the moment its limit has passed."""
    world = a_world(behaviour=Behaviour(work_s=1210), **parts)
    world.submit()
    world.run(seconds(20 * 60 + 33))
    assert world.job.phase is Phase.RUNNING
    return world


def test_a_success_stored_before_the_plane_says_timed_out_is_the_outcome(a_world):
    point = point_before(a_world, "objects.create")
    world = overdue(a_world)
    step(world, freeze_at=point, freeze_for=seconds(20))
    world.settle()
    assert ending(world) == (Outcome.SUCCEEDED, Reason.COMPLETED)


def test_a_time_out_said_before_the_worker_succeeds_is_the_outcome(a_world):
    world = overdue(a_world)
    step(world)
    assert ending(world) == (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT)
    world.settle()


FORGED = {
    "wrong nonce": (
        lambda job: marker_object(job.job_key, "0" * 16, 0, "terminal"),
        b'{"status": "SUCCEEDED"}',
    ),
    "another job's path": (
        lambda job: marker_object("sf-other-0123456789ab-ml-a1", job.resources[0].nonce, 0, "terminal"),
        b'{"status": "SUCCEEDED"}',
    ),
    "another index": (
        lambda job: marker_object(job.job_key, job.resources[0].nonce, 1, "terminal"),
        b'{"status": "SUCCEEDED"}',
    ),
    "one megabyte": (
        lambda job: marker_object(job.job_key, job.resources[0].nonce, 0, "terminal"),
        b'{"status": "SUCCEEDED", "detail": "' + b"x" * 1_000_000 + b'"}',
    ),
    "a list": (lambda job: marker_object(job.job_key, job.resources[0].nonce, 0, "terminal"), b"[1]"),
    "a status of its own": (
        lambda job: marker_object(job.job_key, job.resources[0].nonce, 0, "terminal"),
        b'{"status": "VICTORY"}',
    ),
    "a success with an exit code": (
        lambda job: marker_object(job.job_key, job.resources[0].nonce, 0, "terminal"),
        b'{"status": "SUCCEEDED", "exit_code": 3}',
    ),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_marker_ends_nothing(a_world, forgery):
    name, body = FORGED[forgery]
    world = a_world()
    world.submit()
    world.run(minutes(2))
    world.cloud.write_object("code", name(world.job), body)
    world.run(minutes(1))
    assert world.job.phase is Phase.RUNNING
    world.settle()
    # Where the forgery took the worker's place its own word is lost, but not what it achieved.
    assert world.job.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("self_delete", ["true", "false"])
@pytest.mark.parametrize("boots", [True, False], ids=["boots", "never boots"])
def test_a_create_that_lands_after_the_end_is_removed(a_world, self_delete, boots):
    world = a_world(settings=settings(SF_GUEST_SELF_DELETE=self_delete), behaviour=Behaviour(boots=boots))
    world.weather.plan(INSERT, BROKEN_OFF, late=minutes(12))
    world.submit()
    world.run(minutes(1))
    world.cancel(world.job.run_id)
    world.run(minutes(10))
    assert (world.job.phase, world.job.outcome) == (Phase.DONE, Outcome.CANCELLED)
    assert not world.cloud.machines()
    world.run(minutes(2))
    assert world.cloud.machines() or not world.cloud.pending
    world.settle()


LOST = {
    "its summary": (
        Behaviour(dies=Death.BEFORE_STORING),
        "preempt",
        Outcome.SUCCEEDED,
        Reason.SETTLED_BY_SUMMARY,
    ),
    "its console": (Behaviour(dies=Death.BEFORE_STORING), "host_error", Outcome.SUCCEEDED, Reason.COMPLETED),
    "a preemption": (Behaviour(dies=Death.AT_WORK), "preempt", Outcome.FAILED, Reason.PREEMPTED),
    "a failed host": (Behaviour(dies=Death.AT_WORK), "host_error", Outcome.FAILED, Reason.HOST_ERROR),
}


@pytest.mark.parametrize("case", LOST)
def test_a_lost_worker_is_settled_by_what_is_left_of_it(a_world, case):
    behaviour, blow, outcome, reason = LOST[case]
    world = a_world(behaviour=behaviour)
    world.submit()
    world.run(minutes(6))
    machine = world.cloud.machines()[0]
    assert getattr(world.cloud.zones.core, blow)(machine.order.zone, machine.order.name, world.now)
    world.settle()
    assert ending(world) == (outcome, reason)


def test_without_capacity_a_run_ends_at_its_capacity_deadline(a_world):
    world = a_world(stock=dry())
    world.submit(limits={"capacity_wait": "3m"})
    world.run(minutes(6))
    world.settle()
    assert world.job.outcome is Outcome.NO_CAPACITY
    assert world.job.reason in {Reason.CAPACITY_TIMEOUT, Reason.CAPACITY_EXHAUSTED}


def test_a_worker_that_brings_no_results_is_stalled(a_world):
    world = a_world(settings=settings(SF_STALL_GRACE_S=240), behaviour=Behaviour(work_s=4000))
    world.submit()
    world.run(minutes(8))
    world.settle()
    assert ending(world) == (Outcome.FAILED, Reason.STALLED)


def test_a_machine_that_never_speaks_runs_into_the_boot_limit(a_world):
    world = a_world(behaviour=Behaviour(boots=False))
    world.submit()
    world.run(minutes(14))
    world.settle()
    assert ending(world) == (Outcome.FAILED, Reason.BOOT_TIMEOUT)
    assert inserts(world) == 1


def stranger_at_our_name(a_world, answer):
    """A create that was not applied, and a stranger who has the name when it is looked for."""
    probe = a_world()
    probe.submit()
    probe.run(seconds(1))
    world = a_world()
    if answer is not None:
        world.weather.plan(INSERT, answer)
    world.cloud.zones.place_stranger("us-central1-a", probe.job.plan.name)
    world.submit()
    world.run(minutes(10))
    return world


@pytest.mark.parametrize("answer", [None, UNAVAILABLE, BROKEN_OFF], ids=["409", "503", "no answer"])
def test_a_strangers_machine_of_our_name_is_told_of_and_never_touched(a_world, answer):
    world = stranger_at_our_name(a_world, answer)
    world.settle()
    assert ending(world) == (Outcome.FAILED, Reason.CONFIG_FAULT)
    assert "belongs to somebody else" in world.job.detail
    assert len(world.cloud.machines()) == 1


def test_the_end_of_a_run_is_told_although_nobody_listens_for_a_while(a_world):
    world = a_world()
    world.weather.lost_publishes = 3
    world.submit()
    world.run(minutes(12))
    (notice,) = world.cloud.topics.waiting("sf-notify-pull")
    assert json.loads(notice.body)["outcome"] == "SUCCEEDED"
    world.settle()


def test_an_older_machine_of_ours_that_holds_the_name_is_removed_and_the_place_tried_again(a_world):
    spans = {"resend_within": seconds(60), "create_grace": seconds(60)}
    quick = settings()
    others = [Stockout(zone=f"us-central1-{letter}", shape=Shape.HTTP) for letter in "bcf"]
    # The first machine never looks for a word of ours, and so stays.
    nonces: list[str] = []
    world = a_world(
        settings=replace(quick, timing=replace(quick.timing, **spans)),
        stock=Stock(others, opened_at=START),
        behaviour=lambda booted: Behaviour(boots=nonces[0] not in booted.metadata["startup-script"]),
    )
    world.weather.plan(INSERT, BROKEN_OFF, late=seconds(290))
    world.weather.plan(INSERT, BROKEN_OFF)
    world.submit()
    world.run(minutes(2))
    nonces.append(world.job.resources[0].nonce)
    world.run(minutes(13))
    world.settle()
    assert ending(world) == (Outcome.SUCCEEDED, Reason.COMPLETED)
    assert [row.location[-1] for row in world.job.resources] == list("abcfaa")

"""The three entry points do what their events ask, in whichever way an event comes in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

SHAPES = ["classic", "binary"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_submit_message_becomes_a_run_with_a_machine(cloud, deliver, events, shape):
    request = getattr(events, shape)(events.message({"config": events.config}, message_id="m-7"))
    assert deliver("on_submit", request) == 204
    assert (cloud.request("m-7")["state"], cloud.job()["phase"]) == ("accepted", "PROVISIONING")
    assert cloud.vms == (cloud.job()["resources"][0]["name"],)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_submit_message_that_comes_twice_makes_one_run(cloud, deliver, events, shape):
    request = getattr(events, shape)(events.message({"config": events.config}))
    assert [deliver("on_submit", request) for _ in range(2)] == [204, 204]
    assert (len(cloud.documents()["jobs"]), len(cloud.vms)) == (1, 1)


def _through_pubsub(events, name):
    return events.classic(events.notification(name))


def _through_pubsub_as_a_cloud_event(events, name):
    return events.binary(events.notification(name))


def _without_a_payload(events, name):
    """Notifications may be configured to carry attributes only; their message has no data then."""
    return events.classic({key: value for key, value in events.notification(name).items() if key != "data"})


def _from_storage(events, name):
    return events.storage_event(name)


@pytest.mark.parametrize(
    "news",
    [
        pytest.param(_through_pubsub, id="notification pushed by Pub/Sub"),
        pytest.param(_through_pubsub_as_a_cloud_event, id="notification as a CloudEvent"),
        pytest.param(_without_a_payload, id="notification without a payload"),
        pytest.param(_from_storage, id="CloudEvent of Cloud Storage"),
    ],
)
def test_a_marker_moves_the_job_that_it_lies_below(cloud, deliver, events, news):
    deliver("on_submit", events.classic(events.message({"config": events.config})))
    started = cloud.mark("started", status="RUNNING")
    assert deliver("on_marker", news(events, started)) == 204
    assert cloud.job()["phase"] == "RUNNING"


def test_a_marker_event_tells_where_to_look_and_nothing_else(cloud, deliver, events):
    deliver("on_submit", events.classic(events.message({"config": events.config})))
    started = cloud.mark("started", status="RUNNING")
    terminal = started.replace("started", "terminal")
    assert deliver("on_marker", events.classic(events.notification(terminal))) == 204
    assert (cloud.job()["phase"], cloud.job()["outcome"]) == ("RUNNING", None)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tick_takes_up_a_job_that_nobody_looked_at(cloud, deliver, events, shape):
    cloud.accept()
    assert deliver("on_tick", getattr(events, shape)(events.message({}))) == 204
    assert (cloud.job()["phase"], len(cloud.vms)) == ("PROVISIONING", 1)


def test_a_tick_is_one_whatever_it_says(cloud, deliver, events):
    cloud.accept()
    attributes_only = {"attributes": {"source": "scheduler"}, "messageId": "m-1"}
    assert deliver("on_tick", events.classic(attributes_only)) == 204
    assert len(cloud.vms) == 1


def test_a_stale_tick_is_acknowledged_unread(cloud, deliver, events):
    cloud.accept()
    before = cloud.documents()
    old = events.message({}, at=datetime.now(UTC) - timedelta(minutes=4))
    assert deliver("on_tick", events.classic(old)) == 204
    assert (cloud.documents(), cloud.machines.counts()) == (before, {})


@pytest.mark.parametrize("target", ["on_submit", "on_marker", "on_tick"])
def test_only_a_post_is_an_event(cloud, deliver, target):
    assert deliver(target, {}, verb="GET") == 405
    assert not any(cloud.documents().values())

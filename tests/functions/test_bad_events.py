"""What another delivery cannot mend is acknowledged; what it can is answered by 5xx, so that it comes again."""

from __future__ import annotations

import json

import pytest

from runtender.ids import job_key, marker_object
from runtender.ports import Create

UNKNOWN_JOB = job_key("flights-0123456789ab", "statistical", 1)
ITS_MARKER = marker_object(UNKNOWN_JOB, "0123456789abcdef", 0, "terminal")


def _no_message(events):
    return events.classic(None)


def _no_body(events):
    return {"data": b""}


def _not_json(events):
    return {"data": b"<xml/>", "headers": {"Content-Type": "application/json"}}


def _a_list(events):
    return {"json": [1, 2]}


def _no_data(events):
    return events.classic({"messageId": "m-1", "attributes": {"why": "because"}})


def _not_base64(events):
    return events.classic({**events.message(b""), "data": "%%%"})


def _data_not_json(events):
    return events.classic(events.message(b"submit, please"))


def _data_a_list(events):
    return events.classic(events.message(b"[]"))


def _data_not_utf8(events):
    return events.classic(events.message(b"\xff\xfe"))


def _cloud_event_without_a_message(events):
    return events.cloud_event("google.cloud.pubsub.topic.v1.messagePublished", {})


def _cloud_event_of_another_kind(events):
    return events.cloud_event("google.cloud.audit.log.v1.written", {"protoPayload": {}})


def _incomplete_cloud_event(events):
    return {"json": {}, "headers": {"ce-type": "google.cloud.pubsub.topic.v1.messagePublished"}}


MALFORMED = [
    pytest.param(_no_message, id="no message"),
    pytest.param(_no_body, id="no body"),
    pytest.param(_not_json, id="body not JSON"),
    pytest.param(_a_list, id="body a list"),
    pytest.param(_no_data, id="no data"),
    pytest.param(_not_base64, id="data not base64"),
    pytest.param(_data_not_json, id="data not JSON"),
    pytest.param(_data_a_list, id="data a list"),
    pytest.param(_data_not_utf8, id="data not UTF-8"),
    pytest.param(_cloud_event_without_a_message, id="CloudEvent without a message"),
    pytest.param(_cloud_event_of_another_kind, id="CloudEvent of another kind"),
    pytest.param(_incomplete_cloud_event, id="CloudEvent without an id"),
]


@pytest.mark.parametrize("malformed", MALFORMED)
def test_a_malformed_submit_is_recorded_and_copied_once_however_often_it_comes(
    cloud, deliver, events, malformed
):
    assert [deliver("on_submit", malformed(events)) for _ in range(2)] == [204, 204]
    documents = cloud.documents()
    (row,) = documents.pop("requests")
    assert (row["state"], bool(row["errors"])) == ("rejected", True)
    assert not any(documents.values())
    assert cloud.dead_letters
    assert cloud.machines.counts() == {}


@pytest.mark.parametrize("malformed", MALFORMED)
def test_a_malformed_marker_event_touches_nothing(cloud, deliver, events, malformed, capsys):
    cloud.accept()
    before = cloud.documents(), cloud.buckets.counts()
    assert deliver("on_marker", malformed(events)) == 204
    assert (cloud.documents(), cloud.buckets.counts()) == before
    assert [line["message"] for line in _log(capsys)] == ["not a storage event"]


@pytest.mark.parametrize("malformed", MALFORMED)
def test_a_malformed_tick_is_acknowledged(cloud, deliver, events, malformed):
    assert deliver("on_tick", malformed(events)) == 204


@pytest.mark.parametrize("event_type", ["OBJECT_DELETE", "OBJECT_METADATA_UPDATE", "OBJECT_ARCHIVE"])
def test_news_of_anything_but_a_finished_object_touches_nothing(cloud, deliver, events, event_type):
    deliver("on_submit", events.classic(events.message({"config": events.config})))
    started = cloud.mark("started", status="RUNNING")
    before = cloud.documents()
    assert deliver("on_marker", events.classic(events.notification(started, event_type))) == 204
    assert cloud.documents() == before


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("runs/gce-status/sf-x.json", id="compatibility copy"),
        pytest.param("runs/status/", id="the folder itself"),
        pytest.param("runs/status/job/nonce/0.started.json", id="no such nonce can be"),
        pytest.param("runs/status/../../secret", id="path that climbs"),
        pytest.param("x" * 1024, id="longest name there is"),
        pytest.param("runs/status/\u2028\x00/0123456789abcdef/0.terminal.json", id="control characters"),
    ],
)
def test_an_object_of_somebody_else_touches_nothing(cloud, deliver, events, name, capsys):
    cloud.accept()
    before = cloud.documents(), cloud.buckets.counts()
    assert deliver("on_marker", events.classic(events.notification(name))) == 204
    assert (cloud.documents(), cloud.buckets.counts()) == before
    assert [line["message"] for line in _log(capsys)] == ["no marker"]


def test_a_marker_of_a_job_that_nobody_knows_touches_nothing(cloud, deliver, events, capsys):
    assert deliver("on_marker", events.classic(events.notification(ITS_MARKER))) == 204
    assert not any(cloud.documents().values())
    assert [line["message"] for line in _log(capsys)] == ["no such job"]


@pytest.fixture
def lost_store(cloud, monkeypatch):
    """Let the store be out of reach until the function that this returns is called."""
    folder = cloud.tmp / "away"
    monkeypatch.setenv("SF_STORE_PATH", str(folder / "store.sqlite"))
    return folder.mkdir


@pytest.mark.parametrize("target", ["on_submit", "on_marker", "on_tick"])
def test_an_event_comes_again_until_the_store_can_be_reached(
    cloud, deliver, events, lost_store, target, capsys
):
    messages = {
        "on_submit": events.message({"config": events.config}),
        "on_marker": events.notification(ITS_MARKER),
        "on_tick": events.message({}),
    }
    request = events.classic(messages[target])
    assert deliver(target, request) == 503
    assert "comes again" in [line["message"] for line in _log(capsys)]
    lost_store()
    assert deliver(target, request) == 204


def test_a_submit_comes_again_while_storage_does_not_answer(cloud, deliver, events, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    assert deliver("on_submit", events.classic(events.message({"config": events.config}))) == 503
    assert not any(cloud.documents().values())


def test_a_bug_is_answered_by_500_so_that_its_event_is_not_lost(cloud, deliver, events):
    broken = {"schema": 1, "job_key": UNKNOWN_JOB, "phase": "ASLEEP"}
    cloud.store.commit([Create(path=f"jobs/{UNKNOWN_JOB}", data=broken)])
    assert deliver("on_marker", events.classic(events.notification(ITS_MARKER))) == 500


@pytest.mark.parametrize("target", ["on_submit", "on_marker", "on_tick"])
def test_a_plane_without_its_settings_acknowledges_nothing(deliver, events, monkeypatch, target):
    monkeypatch.delenv("SF_PROJECT_ID")
    assert deliver(target, events.classic(events.message({"config": events.config}))) == 500


def test_nothing_of_a_malformed_event_is_taken_for_a_request_of_ours(cloud, deliver, events):
    """A rejected message keeps its row; the good one that follows has its own."""
    deliver("on_submit", _data_not_json(events))
    good = events.message({"config": events.config}, message_id="m-2")
    assert deliver("on_submit", events.classic(good)) == 204
    assert (cloud.request("m-1")["state"], cloud.request("m-2")["state"]) == ("rejected", "accepted")


def _log(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.split("\n") if line.startswith("{")]

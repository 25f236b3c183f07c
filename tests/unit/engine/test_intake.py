"""A run is stored once however often its message arrives; bad input is recorded, told and never retried."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from runtender.errors import Retryable
from runtender.model import LiveLimit

CONFIG = {
    "run_name": "flights",
    "python_runtime": "gce",
    "data": {"source_table": "gs://wh/panel.csv"},
    "models": ["theta", "autoets"],
}


def test_a_submit_stores_request_run_and_jobs(world):
    receipt = world.submit(labels={"team": "demand"})
    assert receipt.state == "accepted"
    assert world.request("m-1")["state"] == "accepted"
    assert world.run(receipt)["status"] == "RUNNING"
    assert world.run(receipt)["labels"] == {"team": "demand"}
    assert world.job(receipt)["phase"] == "PENDING"
    assert world.compute.counts() == {}, "the intake provisions nothing"


def test_the_validated_config_is_stored_for_the_workers(world):
    receipt = world.submit()
    body = world.objects.read("code", f"runs/{receipt.run_id}.json", limit=100_000)
    stored = json.loads(body)
    assert stored["models"] == ["theta", "autoets"]
    assert stored["data"]["horizon"] == 28, "defaults are written out"


def test_the_same_message_again_gets_the_same_answer_and_starts_nothing(world):
    first = world.submit()
    again = world.submit()
    assert (again.state, again.run_id, again.job_keys) == ("accepted", first.run_id, ())
    assert len(world.store.find("jobs")) == 1


def test_the_same_config_under_another_request_is_a_duplicate(world):
    first = world.submit()
    other = world.submit("m-2")
    assert (other.state, other.run_id, other.job_keys) == ("duplicate", first.run_id, ())
    assert world.request("m-2")["state"] == "duplicate"


def test_force_starts_the_next_attempt_after_the_end_and_never_beside_a_living_one(world):
    first = world.submit()
    early = world.submit("m-2", force=True)
    assert early.state == "rejected"
    assert "still alive" in early.errors[0]
    world.start(first)
    world.finish(first)
    assert world.run(first)["outcome"] == "SUCCEEDED"
    second = world.submit("m-3", force=True)
    assert second.job_keys[0].endswith("-statistical-a2")
    assert world.run(second)["outcome"] is None
    assert world.run(second)["families"]["statistical"]["attempt"] == 2


def test_one_attempt_per_period(world):
    first = world.submit("m-1", every="1d")
    assert first.state == "accepted"
    assert world.submit("m-2", every="1d").state == "duplicate"
    world.start(first)
    world.finish(first)
    world.clock.sleep(86400)
    assert world.submit("m-3", every="1d").job_keys[0].endswith("-a2")
    assert world.submit("m-3", every="1d").state == "accepted"
    assert len(world.store.find("jobs")) == 2


def test_a_config_in_cloud_storage_is_read_there(world):
    world.objects.put("wh", "c.json", json.dumps(CONFIG).encode())
    assert world.send({"config_uri": "gs://wh/c.json"}).state == "accepted"


REJECTED = {
    "not JSON": (b"{", "message"),
    "unknown key": ({"config": CONFIG, "famlies": []}, "famlies"),
    "unknown config key": ({"config": {**CONFIG, "modles": []}}, "modles"),
    "wrong type": ({"config": {**CONFIG, "models": "theta"}}, "models"),
    "missing data": ({"config": {k: v for k, v in CONFIG.items() if k != "data"}}, "data"),
    "unknown model": ({"config": {**CONFIG, "models": ["tetha"]}}, "did you mean"),
    "missing panel": (
        {"config": {**CONFIG, "data": {"source_table": "gs://wh/none.csv"}}},
        "data.source_table: gs://wh/none.csv does not exist",
    ),
    "missing config object": ({"config_uri": "gs://wh/none.json"}, "config_uri"),
    "a runtime not served": ({"config": {**CONFIG, "python_runtime": "spark"}}, "python_runtime"),
    "2 MB": (b" " * 2_000_000, "message"),
}


@pytest.mark.parametrize(("message", "words"), REJECTED.values(), ids=REJECTED.keys())
def test_bad_input_is_recorded_copied_to_the_dead_letters_and_provisions_nothing(world, message, words):
    receipt = world.send(message)
    assert receipt.state == "rejected"
    assert any(words in error for error in receipt.errors)
    row = world.request("m-1")
    assert (row["state"], row["errors"]) == ("rejected", list(receipt.errors))
    ((topic, body, attributes),) = world.topics.sent
    assert topic == "sf-dead-letter"
    assert body == (message if isinstance(message, bytes) else json.dumps(message).encode())
    assert attributes["message_id"] == "m-1"
    assert world.store.find("runs") == []
    assert world.compute.counts() == {}


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(
            {"kind": "task", "config": {"name": "n", "env": {"DB_PASSWORD": "hunter2"}}}, id="by its name"
        ),
        pytest.param({"kind": "task", "config": {"name": "n", "args": ["ya29.hunter2"]}}, id="by its shape"),
        pytest.param({"famlies": "Bearer hunter2"}, id="where nothing should be"),
        pytest.param(b'{"token": "ya29.hunter2"', id="in what is no JSON"),
    ],
)
def test_a_secret_in_a_message_is_in_no_answer_no_dead_letter_and_no_log(world, message, caplog):
    caplog.set_level("DEBUG")
    assert world.send(message).state == "rejected"
    row = world.request("m-1")
    assert "hunter2" not in repr(
        (row, world.topics.sent, caplog.messages, [vars(one) for one in caplog.records])
    )
    assert "[redacted]" in world.topics.sent[0][1].decode()


@pytest.mark.parametrize(
    "message", [b"{", {"request_id": "r-1", "famlies": []}], ids=["no JSON", "unknown key"]
)
def test_a_rejected_message_that_comes_again_gets_its_answer_and_is_one_dead_letter(world, message):
    first, second = world.send(message), world.send(message)
    assert (second.state, second.errors) == ("rejected", first.errors)
    assert len(world.topics.sent) == 1


def test_a_malformed_message_under_the_id_of_another_gets_that_ones_answer(world):
    accepted = world.submit(request_id="r-1")
    again = world.send({"request_id": "r-1", "famlies": []}, "m-2")
    assert (again.state, again.run_id, again.job_keys) == ("accepted", accepted.run_id, ())
    assert world.request("r-1")["state"] == "accepted"


def test_an_empty_panel_is_told_before_a_machine_is_made(world):
    world.objects.put("wh", "panel.csv", b"")
    assert "is empty" in world.submit().errors[0]


class TestCancel:
    def test_the_id_of_another_request_gets_that_ones_answer_and_cancels_nothing(self, world):
        receipt = world.submit(request_id="r-1")
        again = world.send({"action": "cancel", "request_id": "r-1", "run_id": receipt.run_id}, "m-2")
        assert (again.state, again.job_keys) == ("accepted", ())
        assert world.job(receipt)["cancel_requested"] is False

    def test_a_run_that_never_started_ends_without_a_machine(self, world):
        receipt = world.submit()
        cancelled = world.send({"action": "cancel", "run_id": receipt.run_id}, "m-2")
        world.start(cancelled)
        assert world.run(receipt)["outcome"] == "CANCELLED"
        assert "compute.instances.insert" not in world.compute.counts()

    def test_a_running_job_is_ended_and_cleaned_up(self, world):
        receipt = world.submit()
        world.start(receipt)
        world.mark(receipt, "started", status="RUNNING")
        world.start(world.send({"action": "cancel", "run_id": receipt.run_id}, "m-2"))
        assert world.job(receipt)["outcome"] == "CANCELLED"
        world.settle_down()
        assert world.job(receipt)["phase"] == "DONE"
        assert world.compute.leftovers().instances == ()

    def test_twice_and_after_the_end_changes_nothing(self, world):
        receipt = world.submit()
        world.start(receipt)
        world.finish(receipt)
        before = world.job(receipt)
        for message_id in ("m-2", "m-3"):
            world.start(world.send({"action": "cancel", "run_id": receipt.run_id}, message_id))
        assert world.job(receipt) == before

    def test_an_unknown_run_is_waited_for_then_rejected(self, world):
        message = {"action": "cancel", "run_id": "nobody-0123456789ab"}
        with pytest.raises(Retryable):
            world.send(message, "m-2")
        published = world.clock.now()
        world.clock.sleep(600)
        receipt = world.send(message, "m-2", published_at=published)
        assert receipt.state == "rejected"
        assert world.request("m-2")["state"] == "rejected"


def test_a_settled_run_is_announced_once(world):
    receipt = world.submit()
    world.start(receipt)
    world.finish(receipt)
    told = [json.loads(body) for topic, body, _ in world.topics.sent if topic == "sf-notify"]
    assert [(message["run_id"], message["outcome"]) for message in told] == [(receipt.run_id, "SUCCEEDED")]


def test_two_families_are_two_jobs_under_one_header(world):
    config = {**CONFIG, "models": ["theta", "lightgbm"]}
    receipt = world.send({"config": config})
    assert len(receipt.job_keys) == 2
    assert set(world.run(receipt)["families"]) == {"statistical", "ml"}


class TestRetry:
    def failed(self, world):
        receipt = world.submit()
        world.start(receipt)
        world.finish(receipt, status="FAILED", exit_code=3)
        return receipt

    def retry(self, world, receipt, message_id="m-2", **changes):
        return world.send({"action": "retry", "run_id": receipt.run_id, **changes}, message_id)

    def test_what_did_not_succeed_gets_its_next_attempt_under_the_accepted_plan(self, world):
        first = self.failed(world)
        before = world.job(first)["plan"]
        again = self.retry(world, first)
        assert again.job_keys == (first.job_keys[0].replace("-a1", "-a2"),)
        after = world.job(again)["plan"]
        assert after["driver_args"] == before["driver_args"]
        assert (after["name"], after["cells_uri"]) != (before["name"], before["cells_uri"])
        assert world.run(first)["outcome"] is None
        world.start(again)
        world.finish(again)
        assert world.run(first)["outcome"] == "SUCCEEDED"

    def test_a_living_attempt_is_not_joined_by_another(self, world):
        receipt = world.submit()
        assert "still alive" in self.retry(world, receipt).errors[0]

    def test_success_is_not_retried(self, world):
        receipt = world.submit()
        world.start(receipt)
        world.finish(receipt)
        assert "has succeeded" in self.retry(world, receipt).errors[0]

    def test_the_same_retry_twice_is_one(self, world):
        first = self.failed(world)
        assert self.retry(world, first).state == "accepted"
        again = self.retry(world, first)
        assert (again.state, again.job_keys) == ("accepted", ())
        assert len(world.store.find("jobs")) == 2

    def test_what_the_limits_have_become_too_small_for_is_refused_instead_of_kept_waiting(self, world):
        first = self.failed(world)
        limits = (LiveLimit(vcpus=1),)
        world.plane = replace(world.plane, settings=replace(world.plane.settings, live_limits=limits))
        assert "SF_LIMITS" in self.retry(world, first).errors[0]
        assert len(world.store.find("jobs")) == 1

    def test_a_retry_of_an_image_that_is_not_allowed_any_more_is_refused(self, world):
        first = self.failed(world)
        stricter = replace(world.plane.settings, image_allow=("ghcr.io/others",))
        world.plane = replace(world.plane, settings=stricter)
        assert "SF_IMAGE_ALLOW" in self.retry(world, first).errors[0]

    def test_unknown_runs_and_families_are_named(self, world):
        first = self.failed(world)
        assert "no run" in world.send({"action": "retry", "run_id": "x-0123456789ab"}, "m-3").errors[0]
        assert "is no family" in self.retry(world, first, "m-4", families=["ml"]).errors[0]


def test_a_forced_submit_delivered_twice_is_accepted_twice_and_starts_one(world):
    first = world.submit()
    world.start(first)
    world.finish(first)
    world.topics.sent.clear()
    states = [world.submit("m-2", force=True).state for _ in range(2)]
    assert states == ["accepted", "accepted"]
    assert world.topics.sent == [], "its own second copy is no dead letter"
    assert len(world.store.find("jobs")) == 2

"""From a message on the submit topic to a machine that is gone, on real processes."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from runtender.local.sources import FLIGHTS_CONFIG
from runtender.model import Outcome, Phase, Reason, ResourceState

pytestmark = pytest.mark.e2e


def flights(**changes: Any) -> dict[str, Any]:
    """A forecast's message that is never the same twice."""
    config = json.loads(FLIGHTS_CONFIG.read_bytes())
    data = {**config["data"], **changes.pop("data", {})}
    config |= {"run_name": f"flights-{uuid.uuid4().hex[:8]}", "data": data, **changes}
    return {"config": config, "package_uri": "gs://local-code/runs/none.zip", "entrypoint": "none:main"}


def test_a_task_runs_on_a_machine_and_leaves_nothing(caller: Any) -> None:
    job = caller.task("sh", "-c", "echo hello $GREETED from $SF_JOB_KEY", env={"GREETED": "world"})
    job = caller.await_phase(job, Phase.DONE)
    assert (job.outcome, job.reason) == (Outcome.SUCCEEDED, Reason.COMPLETED)
    assert f"hello world from {job.job_key}" in caller.logs(job)
    assert {row.state for row in job.resources} == {ResourceState.GONE}
    assert caller.run(job.run_id)["outcome"] == "SUCCEEDED"
    caller.await_that(lambda: set(caller.cloud.leftovers().values()) == {0})


def test_the_shipped_task_runs_as_it_stands(caller: Any) -> None:
    config = json.loads(FLIGHTS_CONFIG.with_name("task.json").read_bytes())
    job = caller.task(*config.pop("command"), **{**config, "name": f"shipped-{uuid.uuid4().hex[:8]}"})
    job = caller.await_phase(job, Phase.DONE)
    assert (job.outcome, job.plan.machine_type) == (Outcome.SUCCEEDED, config["machine_type"])
    assert f"hello from {job.job_key}" in caller.logs(job)


def test_a_tasks_exit_code_and_last_words_outlive_its_machine(caller: Any) -> None:
    job = caller.task("python", "-c", "print('no such luck'); raise SystemExit(3)")
    job = caller.await_phase(job, Phase.DONE)
    assert (job.outcome, job.reason) == (Outcome.FAILED, Reason.EXIT_CODE)
    assert "no such luck" in caller.logs(job)


def test_ten_copies_of_one_message_at_once_make_one_run_and_one_machine(caller: Any) -> None:
    request_id, name = str(uuid.uuid4()), f"once-{uuid.uuid4().hex[:8]}"
    message = {"request_id": request_id, "kind": "task", "config": {"name": name, "command": ["true"]}}
    with caller.calls() as calls:
        with ThreadPoolExecutor(10) as pool:
            list(pool.map(caller.publish, [message] * 10))
        run_id = caller.answer(request_id)["run_id"]
        job = caller.await_phase(caller.only_job(run_id), Phase.DONE)
    assert job.outcome is Outcome.SUCCEEDED
    assert len(job.resources) == 1
    assert calls["compute.instances.insert"] == 1


def test_the_functions_may_die_while_a_machine_works(caller: Any) -> None:
    job = caller.await_phase(caller.task("sleep", "2"), Phase.RUNNING)
    dead = caller.cloud.functions.pid
    caller.cloud.functions.kill()
    job = caller.await_phase(job, Phase.DONE)
    assert job.outcome is Outcome.SUCCEEDED
    assert caller.cloud.functions.pid != dead


@pytest.mark.parametrize(
    ("message", "error"),
    [
        pytest.param(
            flights(models=["theta", "prophecy"]),
            'models[1]: "prophecy" is not a known model',
            id="unknown model",
        ),
        pytest.param(
            flights(data={"source_table": "gs://local-warehouse/panels/none.csv"}),
            "data.source_table: gs://local-warehouse/panels/none.csv does not exist",
            id="missing panel",
        ),
        pytest.param(
            flights(data={"source_table": "gs://local-warehouse/panels/empty.csv"}),
            "data.source_table: gs://local-warehouse/panels/empty.csv is empty",
            id="empty panel",
        ),
        pytest.param(flights(data={"horizon": "28"}), "data.horizon: ", id="wrong type"),
        pytest.param(flights(nodels=["theta"]), "nodels: ", id="unknown key"),
        pytest.param({"config": {"models": ["theta"]}}, "data: is missing", id="missing data"),
    ],
)
def test_bad_input_is_answered_by_name_and_costs_no_machine(
    caller: Any, message: dict[str, Any], error: str
) -> None:
    caller.cloud.objects.put("local-warehouse", "panels/empty.csv", b"")
    request_id = str(uuid.uuid4())
    with caller.calls() as calls:
        body = json.dumps({"request_id": request_id, **message}).encode()
        caller.publish(body)
        row = caller.answer(request_id)
    assert row["state"] == "rejected"
    assert any(error in each for each in row["errors"]), row["errors"]
    assert calls.get("compute.instances.insert", 0) == 0
    assert body in dead_letters(caller)


def test_a_message_of_two_megabytes_is_rejected_and_kept(caller: Any) -> None:
    body = json.dumps({"config": {"run_name": "x" * 2_000_000}}).encode()
    row = caller.answer(caller.publish(body))
    assert row["state"] == "rejected"
    assert body in dead_letters(caller)


def dead_letters(caller: Any) -> list[bytes]:
    waiting = caller.cloud.backend.server.waiting(f"{caller.cloud.settings.dead_letter_topic}-pull")
    return [message.body for message in waiting]

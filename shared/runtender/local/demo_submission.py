"""What the demo sends to the plane: a scenario's workload as submit messages, and its cancel."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from runtender.ids import request_document_id
from runtender.local.cloud import LocalCloud
from runtender.local.errors import LocalCloudError
from runtender.local.scenario.rules import DemoPlan, Workload
from runtender.local.sources import FLIGHTS_CONFIG
from runtender.model import Phase
from runtender.wire.documents import job_from_document, request_path

# A message is answered within a second; a machine that is busy, or a scenario that holds it up, gets more.
_ANSWER_WAIT_S = 60.0
_POLL_S = 0.05

# Enough of the panel that every part of a run has something to do, and done in seconds.
_SAMPLE_MODELS = ("theta", "autoets")
_SAMPLE_SERIES = 12


def submit(
    cloud: LocalCloud, code: Mapping[str, str | None], number: int = 0, workers: int | None = None
) -> str:
    """Publish the scenario's message, in all its copies at once, and return the run's id once the plane took it in.

    `code` has what a forecast needs besides its config: `package_uri` and `entrypoint`. `number` counts the runs before
    this one: each has a name of its own. With `workers` it asks for an Indexed Job. Raises `LocalCloudError` where the
    plane does not answer, or does not accept.
    """
    plan = cloud.scenario.demo
    request_id = str(uuid.uuid4())
    message = {
        "request_id": request_id,
        "limits": dict(plan.limits),
        **({"image": plan.image} if plan.image else {}),
        **_subject(f"{cloud.scenario.name}{_suffix(number)}", plan, code, number, workers),
    }
    body = json.dumps(message).encode()
    with ThreadPoolExecutor(max_workers=plan.copies) as pool:
        for _ in range(plan.copies):
            pool.submit(cloud.topics.publish, cloud.settings.submit_topic, body, {})
    row = _answer(cloud, request_id)
    if row["state"] != "accepted":
        raise LocalCloudError(f"the submit message was {row['state']}: {'; '.join(row['errors'])}")
    return str(row["run_id"])


def cancel_in(cloud: LocalCloud, run_id: str, phase: Phase) -> None:
    """Cancel a run as soon as a job of it is in `phase`, from a thread that ends with the run at the latest."""
    threading.Thread(target=_cancel_when, args=(cloud, run_id, phase), daemon=True).start()


def _subject(
    name: str, plan: DemoPlan, code: Mapping[str, str | None], number: int, workers: int | None
) -> dict[str, Any]:
    """Return what a message says of its workload."""
    if plan.workload is Workload.TASK:
        on_pods = {"runtime": "gke", "workers": workers} if workers else {}
        return {
            "kind": "task",
            "config": {"name": name, "command": list(plan.command), **on_pods, **plan.config},
        }
    config = json.loads(FLIGHTS_CONFIG.read_bytes())
    config["run_name"] += _suffix(number)
    if workers:
        config |= {"python_runtime": "gke", "compute": {"workers": workers}}
    if plan.workload is Workload.SAMPLE:
        config["models"] = list(_SAMPLE_MODELS)
        config["data"]["series_limit"] = _SAMPLE_SERIES
    return {"config": {**config, **plan.config}, **{key: text for key, text in code.items() if text}}


def _suffix(number: int) -> str:
    return f"-{number + 1}" if number else ""


def _answer(cloud: LocalCloud, request_id: str) -> Mapping[str, Any]:
    path = request_path(request_document_id(request_id))
    deadline = time.monotonic() + _ANSWER_WAIT_S
    while (row := cloud.store.get(path)) is None:
        if time.monotonic() >= deadline:
            raise LocalCloudError(
                f"the plane did not answer in {_ANSWER_WAIT_S:g} s; see {cloud.functions.log}"
            )
        time.sleep(_POLL_S)
    return row.data


def _cancel_when(cloud: LocalCloud, run_id: str, phase: Phase) -> None:
    while True:
        jobs = [job_from_document(found.data) for found in cloud.store.find("jobs", where={"run_id": run_id})]
        if any(job.phase is phase for job in jobs):
            message = {"action": "cancel", "run_id": run_id}
            cloud.topics.publish(cloud.settings.submit_topic, json.dumps(message).encode(), {})
            return
        if all(job.outcome is not None for job in jobs):
            return
        time.sleep(_POLL_S)

"""The startup script of the runtime `gce`, rendered as the plane renders it, on a machine that runs it unedited."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from runtender.ids import key_digest, marker_object, nonce, request_uuid
from runtender.model import (
    Deadlines,
    Job,
    JobPlan,
    Placement,
    Resource,
    ResourceKind,
    ResourceState,
    SubmitKind,
)
from runtender.runtimes.gce_vm import GceVm
from runtender.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="simulated machines need Linux")

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
ZONE = "us-central1-a"
KEY = "sf-demo-0123456789ab-task-a1"
NONCE = nonce(KEY, 0, 0)
SETTINGS = Settings.from_env({"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "bucket", "SF_TIME_SCALE": "50"})


def a_job(command: tuple[str, ...], **plan: Any) -> Job:
    fields: dict[str, Any] = {
        "runtime": "gce",
        "kind": SubmitKind.TASK,
        "name": KEY,
        "machine_type": "e2-standard-2",
        "image_uri": "us-docker.pkg.dev/p/r/worker:1",
        "command": command,
        "service_account": "worker@p.iam.gserviceaccount.com",
        "status_bucket": "bucket",
        "logs_uri": f"gs://bucket/runs/logs/{KEY}",
        "placements": (Placement(region="us-central1", zone=ZONE),),
        "capacity_wait": timedelta(minutes=5),
        "run_limit": timedelta(minutes=5),
        "max_run_duration": timedelta(minutes=5),
        **plan,
    }
    return Job(
        job_key=KEY,
        key=key_digest(KEY),
        run_id="demo-0123456789ab",
        family="task",
        attempt=1,
        runtime="gce",
        plan=JobPlan(**fields),
        deadlines=Deadlines(capacity=NOW),
        accepted_at=NOW,
        wake_at=NOW,
    )


ROW = Resource(
    kind=ResourceKind.VM,
    name=KEY,
    location=ZONE,
    placement=0,
    try_number=0,
    nonce=NONCE,
    request_id=request_uuid(KEY, 1, 0, 0),
    state=ResourceState.INTENDED,
    since=NOW,
)


@pytest.fixture
def place(cloud: Any) -> Callable[..., None]:
    """Insert the machine of a job, by the runtime's own request."""

    def insert(command: tuple[str, ...], **plan: Any) -> None:
        request = GceVm().create(a_job(command, **plan), ROW, SETTINGS)
        answer = requests.request(
            request.verb,
            f"{cloud.compute.url}/compute/v1{request.path}",
            params=dict(request.query),
            json=request.body,
            timeout=10,
        )
        assert answer.status_code == 200, answer.text

    return insert


def await_terminal(cloud: Any) -> dict[str, Any]:
    name = marker_object(KEY, NONCE, 0, "terminal").replace("/", "%2F")
    cloud.await_that(lambda: cloud.object_named(name) is not None, lambda: cloud.serial(KEY))
    marker: dict[str, Any] = json.loads(cloud.object_named(name))
    return marker


def test_a_job_runs_tells_and_removes_its_machine(cloud, place):
    place(("/opt/venv/bin/python", "-c", "print('worked')"))
    marker = await_terminal(cloud)
    assert (marker["status"], marker["exit_code"], marker["instance"]) == ("SUCCEEDED", 0, KEY)
    bucket, _, name = marker["log_uri"].removeprefix("gs://").partition("/")
    assert (bucket, cloud.object_named(name.replace("/", "%2F"))) == ("bucket", "worked\n")
    assert cloud.object_named(marker_object(KEY, NONCE, 0, "started").replace("/", "%2F")) is not None
    cloud.await_status("404", KEY)
    assert cloud.compute.leftovers().disks == ()


def test_a_job_that_fails_says_with_what(cloud, place):
    place(("bash", "-c", "echo broken >&2; exit 3"))
    marker = await_terminal(cloud)
    assert (marker["status"], marker["exit_code"], marker["detail"]) == ("FAILED", 3, "broken")
    cloud.await_status("404", KEY)


def test_a_job_whose_image_is_missing_never_starts(cloud, place):
    place(("true",), image_uri="us-docker.pkg.dev/p/r/missing:1")
    marker = await_terminal(cloud)
    assert (marker["status"], marker["reason"]) == ("FAILED", "ImagePull")


def test_a_preempted_job_is_interrupted_and_not_failed(cloud, place):
    place(("sleep", "100"), spot=True)
    started = marker_object(KEY, NONCE, 0, "started").replace("/", "%2F")
    cloud.await_that(lambda: cloud.object_named(started) is not None, lambda: cloud.serial(KEY))
    cloud.compute.preempt(ZONE, KEY)
    marker = await_terminal(cloud)
    assert (marker["status"], marker["reason"], marker["exit_code"]) == ("INTERRUPTED", "Preempted", 143)


def test_a_machine_that_is_not_wanted_any_more_removes_itself_unused(cloud, place):
    terminal = marker_object(KEY, NONCE, 0, "terminal").replace("/", "%2F")
    url = f"{cloud.objects.url}/upload/storage/v1/b/bucket/o?uploadType=media&name={terminal}"
    assert requests.post(url, data=b"{}", timeout=10).status_code == 200
    place(("true",))
    cloud.await_status("404", KEY)
    assert cloud.object_named(marker_object(KEY, NONCE, 0, "started").replace("/", "%2F")) is None

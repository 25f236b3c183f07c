"""A worker of an Indexed Job in a pod: what stays of it when Kubernetes takes its pod away and starts another."""

from __future__ import annotations

import io
import json
import sys
import zipfile

import pytest
from google.cloud.storage import Client  # type: ignore[import-untyped]

from runtender.runtimes.kube import PYTHON
from runtender.worker.source import index_source

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="simulated pods need Linux")

FOLDER = "runs/status/sf-r-1-ml-a1/0123456789abcdef/"
ENTRY = """
import os, time
def main():
    print("working", flush=True)
    time.sleep(float(os.environ["WORK_S"]))
"""


@pytest.fixture
def bucket(storage, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("demo.py", ENTRY)
    client = Client(project="p")
    client.bucket("code").blob("p.zip").upload_from_string(content.getvalue())
    yield client.bucket("code")
    client.close()


def start(pods, uid: str, work_s: float) -> None:
    environment = {
        "SF_VM_RUNTIME": "gke",
        "SF_JOB_KEY": "sf-r-1-ml-a1",
        "SF_NONCE": "0123456789abcdef",
        "SF_STATUS_BUCKET": "code",
        "SF_PROJECT_ID": "p",
        "SF_POD_UID": uid,
        "JOB_COMPLETION_INDEX": "3",
        "WORK_S": str(work_s),
    }
    arguments = ("--package-uri", "gs://code/p.zip", "--entrypoint", "demo:main")
    pods.start(PYTHON, "-c", index_source(), args=arguments, uid=uid, env=environment)


def terminal(bucket):
    blob = bucket.blob(f"{FOLDER}3.terminal.json")
    return json.loads(blob.download_as_bytes()) if blob.exists() else None


def test_an_evicted_index_is_done_by_the_next_pod_and_not_again_by_a_third(pods, bucket):
    start(pods, "first", 60)
    pods.await_log(b"working", "first")
    pods.kill(20, uid="first")
    assert pods.await_exit("first") == (143, False)
    assert terminal(bucket) is None

    start(pods, "second", 0)
    assert pods.await_exit("second") == (0, False)
    assert terminal(bucket) is not None
    assert (terminal(bucket)["status"], terminal(bucket)["pod_uid"]) == ("SUCCEEDED", "second")

    start(pods, "third", 60)
    assert pods.await_exit("third") == (0, False)
    assert b"index 3 has ended before, with 0" in pods.logs["third"]
    assert terminal(bucket)["pod_uid"] == "second"
    assert pods.runner.processes() == 0

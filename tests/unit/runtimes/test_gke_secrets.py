"""A task's secrets on Kubernetes: the pod has their names, and reads them itself before the command runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.model import SubmitKind
from runtender.runtimes.gke_body import indexed_job
from runtender.worker.source import secrets_source

NAMED = "secret://projects/p/secrets/db/versions/7"


@pytest.fixture
def worker_of(on_kubernetes):
    """Return the container of a task's pod."""

    def build(**env):
        bearing = on_kubernetes(variables={"SF_GKE_CLUSTER": "c"})
        task = {"kind": SubmitKind.TASK, "command": ("echo",), "args": ("hello",), "env": env}
        plan = replace(bearing.job.plan, **task)
        body = indexed_job(replace(bearing, job=replace(bearing.job, plan=plan)))
        return body["spec"]["template"]["spec"]["containers"][0]

    return build


def test_the_secrets_are_read_before_the_command_runs(worker_of):
    worker = worker_of(DB_PASSWORD=NAMED)
    assert worker["command"] == ["/opt/venv/bin/python", "-c", secrets_source(), "echo"]
    assert worker["args"] == ["hello"]
    assert {"name": "DB_PASSWORD", "value": NAMED} in worker["env"]


def test_without_secrets_the_command_is_the_tasks_own(worker_of):
    assert worker_of(PLAIN="seen")["command"] == ["echo"]


def test_kubernetes_expands_nothing_in_what_reads_them():
    assert "$(" not in secrets_source()

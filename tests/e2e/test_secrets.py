"""A task that names a secret finds it in its environment, on a machine and in pods; the plane has only its name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtender.model import Job, Outcome, Phase, Reason

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

NAMED = "secret://projects/local/secrets/db/versions/latest"
VALUE = "hunter2 'in' \"words\" $HOME"


@pytest.fixture
def stored(cloud: Any) -> None:
    """The secret `db`."""
    folder = cloud.folder.parent / "secrets"
    folder.mkdir(exist_ok=True)
    (folder / "db").write_text(VALUE)


def finished(caller: Any, runtime: str, expected: str) -> Job:
    """Run a task that succeeds if it finds what is expected."""
    # Compared by length and a part, so that the value itself is not in the plan.
    test = f'[ "${{#DB_PASSWORD}} ${{DB_PASSWORD:0:7}}" = "{expected}" ]'
    job: Job = caller.task("bash", "-c", test, env={"DB_PASSWORD": NAMED}, runtime=runtime)
    return caller.await_phase(job, Phase.DONE)  # type: ignore[no-any-return]


@pytest.mark.parametrize("runtime", ["gce", "gke"])
def test_the_command_finds_the_secret_and_no_document_has_it(
    caller: Any, cloud: Any, stored: None, runtime: str
) -> None:
    job = finished(caller, runtime, f"{len(VALUE)} {VALUE[:7]}")
    assert job.outcome is Outcome.SUCCEEDED, job.detail
    documents = [
        found.data for kind in ("jobs", "runs", "requests") for found in cloud.store.find(kind, limit=1000)
    ]
    assert NAMED in json.dumps(documents, default=str)
    assert VALUE not in json.dumps(documents, default=str)


def test_a_secret_that_is_not_there_is_named_and_nothing_runs(caller: Any) -> None:
    named = NAMED.replace("/db/", "/none/")
    job = caller.await_phase(caller.task("true", env={"API_TOKEN": named}), Phase.DONE)
    assert (job.outcome, job.reason) == (Outcome.FAILED, Reason.CONFIG_FAULT)
    assert "API_TOKEN: projects/local/secrets/none/versions/latest: HTTP 404" in job.detail

"""A secret that comes by mistake is kept from everybody: what is planted in a log or a message is in no output of any kind."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtender.model import Phase

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

PLANTED = "ya29.a0AfB_PlantedInALog"
# Unpacked where it runs: in the arguments it would be refused.
PRINTS_IT = f"echo login with $(echo {base64.b64encode(PLANTED.encode()).decode()} | base64 -d); exit 3"


def outputs(cloud: Any, *commands: str) -> Iterator[tuple[str, str]]:
    """What anybody can be shown: documents, objects, logs of the functions, dead letters, answers of the commands."""
    for kind in ("requests", "runs", "jobs"):
        for found in cloud.store.find(kind, limit=1000):
            yield found.path, repr(found.data)
    for path in (cloud.folder / "objects").rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes().decode(errors="replace")
    for path in cloud.functions.log.parent.rglob("*.log"):
        yield str(path), path.read_text(errors="replace")
    for letter in cloud.backend.server.waiting(f"{cloud.settings.dead_letter_topic}-pull"):
        yield "dead letter", repr((letter.body, letter.attributes))
    for command in commands:
        yield command, said(cloud, *command.split(), "--format", "json")


def said(cloud: Any, *arguments: str) -> str:
    command = [str(Path(sys.executable).with_name("runtender")), *arguments]
    environment = {**os.environ, **cloud.environment}
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60)
    return ended.stdout + ended.stderr


def test_a_token_that_a_worker_prints_is_shown_to_nobody(caller: Any) -> None:
    job = caller.await_phase(caller.task("bash", "-c", PRINTS_IT), Phase.DONE)
    shown = (f"{command} {job.run_id}" for command in ("describe", "history", "logs"))
    found = dict(outputs(caller.cloud, *shown, "list"))
    assert "login with [redacted]" in job.detail
    assert [where for where, text in found.items() if PLANTED in text] == []
    assert "login with [redacted]" in found[f"logs {job.run_id}"]


def test_a_secret_in_a_refused_message_is_shown_to_nobody(caller: Any) -> None:
    planted = "PlantedInAMessage"
    task = {"name": "t", "env": {"DB_PASSWORD": planted}, "command": ["true"], "args": [f"ya29.{planted}"]}
    request_id = str(uuid.uuid4())
    caller.publish(json.dumps({"request_id": request_id, "kind": "task", "config": task}).encode())
    errors = caller.answer(request_id)["errors"]
    assert [error.partition(":")[0] for error in errors] == ["env.DB_PASSWORD", "args"]
    found = dict(outputs(caller.cloud, "dead-letters list"))
    assert request_id in found["dead-letters list"]
    assert [where for where, text in found.items() if planted in text] == []

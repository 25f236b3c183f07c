"""The shipped scenarios, each as a user plays it: the run ends as the scenario expects, and the command with it.

Those whose point is a process that ends, an event or a user's exit code are part of every test run, all of them of
`make scenarios`. What else they tell, the simulation tells as well: its services are the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runtender.local.scenarios import find_scenario, shipped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TELLING = {
    "container-exits-3",
    "events-three-times-out-of-order",
    "functions-killed-after-the-insert",
    "functions-killed-before-the-delete",
    "gke-functions-killed-after-the-create",
    "insert-times-out",
    "no-capacity",
    "preempted-mid-run",
}
Demo = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    """The demo of a scenario, whose cloud lies in a folder of its own."""

    def run(scenario: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("runtender")), "local", "demo", "--format", "json"]
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        return subprocess.run(
            [*command, "--scenario", scenario], capture_output=True, text=True, check=False, env=environment
        )

    return run


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in TELLING else pytest.mark.slow, id=name) for name in shipped()],
)
def test_a_scenario_ends_as_it_is_expected_to(demo: Demo, name: str) -> None:
    ended = demo(name)
    assert ended.stdout, ended.stderr
    document = json.loads(ended.stdout)
    assert [each for each in document["expectations"] if not each["met"]] == [], ended.stderr
    assert ended.returncode == find_scenario(name).expect["exit_code"]
    assert set(document["leftovers"].values()) == {0}


def test_what_does_not_come_as_expected_is_said_and_ends_with_1(demo: Demo, tmp_path: Path) -> None:
    wrong = tmp_path / "hopeful.yaml"
    wrong.write_text(
        "name: hopeful\n"
        "strangers: [{}]\n"
        "demo: {workload: task, command: ['true']}\n"
        "expect: {outcome: SUCCEEDED, exit_code: 0, strangers: 1}\n"
    )
    ended = demo(str(wrong))
    assert ended.returncode == 1
    assert "not as scenario hopeful expects: outcome is FAILED, not SUCCEEDED" in ended.stderr
    assert "strangers" not in ended.stderr

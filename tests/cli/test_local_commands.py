"""`local`: the command's own part. What a local cloud does is tested where it is built."""

from __future__ import annotations

import json
import subprocess

import pytest


@pytest.fixture(autouse=True)
def _in_an_empty_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_status_without_a_local_cloud_says_how_to_start_one(runtender):
    result = runtender("local", "status", "--format", "json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["running"] is False
    assert "runtender local up" in result.stderr


def test_down_without_a_local_cloud_changes_nothing(runtender):
    result = runtender("local", "down", "--format", "json")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["stopped"] is False


def test_down_said_twice_does_not_reach_for_the_cloud_of_a_folder_above(
    runtender, home, local_variables, tmp_path, monkeypatch
):
    # A number that no process has: nothing is hit if this ever fails.
    home.write_state({"environment": dict(local_variables), "supervisor": 2**22 + 1})
    below = tmp_path / "below"
    (below / ".runtender").mkdir(parents=True)
    monkeypatch.chdir(below)
    result = runtender("local", "down", "--format", "json")

    assert json.loads(result.stdout) == {
        "running": False,
        "folder": str(below),
        "stopped": False,
        "processes_left": 0,
    }
    assert home.read_state() is not None


def test_env_without_a_local_cloud_is_an_error(runtender):
    result = runtender("local", "env")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "runtender local up" in result.stderr


def test_a_shell_takes_the_printed_environment(runtender, home, local_variables):
    home.write_state({"environment": {**local_variables, "SF_PLANE_ID": "it's $HOME"}})
    exports = runtender("local", "env").stdout
    shown = subprocess.run(
        ["bash", "-c", f'{exports}\nprintf "%s\\n" "$SF_PROJECT_ID" "$SF_PLANE_ID"'],
        capture_output=True,
        text=True,
        check=True,
    )

    assert shown.stdout.splitlines() == ["local", "it's $HOME"]


@pytest.mark.parametrize("verb", ["up", "demo"])
@pytest.mark.parametrize(
    "options", [("--time-scale", "0"), ("--scenario", "no-such-scenario")], ids=["scale", "scenario"]
)
def test_a_local_cloud_is_not_started_with_wrong_options(runtender, verb, options, tmp_path):
    result = runtender("local", verb, *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert not (tmp_path / ".runtender").exists()


def test_the_shipped_scenarios_can_be_listed(runtender, tmp_path):
    listed = json.loads(runtender("local", "demo", "--list-scenarios", "--format", "json").stdout)

    assert {"name", "description"} == set(listed["scenarios"][0])
    assert "preempted-mid-run" in runtender("local", "demo", "--list-scenarios").stdout
    assert not (tmp_path / ".runtender").exists()


@pytest.mark.parametrize("verb", ["up", "demo"])
def test_a_backend_that_is_not_installed_is_told_how_to_install_it(runtender, verb, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("FIRESTORE_EMULATOR_HOST", "PUBSUB_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    result = runtender("local", verb, "--backend", "google")

    assert (result.exit_code, result.stdout) == (1, "")
    for component in ("cloud-firestore-emulator", "pubsub-emulator"):
        assert f"gcloud components install {component}" in result.stderr
    assert not (tmp_path / ".runtender").exists()

"""Which plane a command talks to: the environment's, or the local cloud of the folder."""

from __future__ import annotations

import json

import pytest

from runtender.cli.exits import Failure, InputFailure
from runtender.cli.world import plane_environment

LOCAL = {
    "SF_BACKEND": "embedded",
    "SF_PROJECT_ID": "local",
    "STORAGE_EMULATOR_HOST": "http://127.0.0.1:1",
}


@pytest.fixture
def local_cloud(tmp_path):
    """A folder below one with a running local cloud."""
    state = tmp_path / ".runtender" / "local.json"
    state.parent.mkdir()
    state.write_text(json.dumps({"environment": {**LOCAL, "LD_PRELOAD": "/tmp/evil.so"}, "pid": 1}))
    below = tmp_path / "deep" / "below"
    below.mkdir(parents=True)
    return below


def test_the_local_cloud_of_a_folder_above_is_used(local_cloud):
    assert plane_environment({}, local_cloud) == LOCAL


def test_a_named_backend_wins_over_the_local_cloud(local_cloud):
    assert plane_environment({"SF_BACKEND": "google", "SF_PROJECT_ID": "prod"}, local_cloud) == {}


def test_a_project_that_loses_to_the_local_cloud_is_told(local_cloud, capsys):
    assert plane_environment({"SF_PROJECT_ID": "prod"}, local_cloud) == LOCAL
    assert "SF_BACKEND=google for prod" in capsys.readouterr().err


def test_the_environment_serves_where_there_is_no_local_cloud(tmp_path):
    assert plane_environment({"SF_PROJECT_ID": "prod"}, tmp_path) == {}


def test_no_plane_at_all_says_what_to_set(tmp_path):
    with pytest.raises(InputFailure, match=r"set SF_PROJECT_ID and SF_CODE_BUCKET.*runtender local up"):
        plane_environment({"HOME": "/root"}, tmp_path)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"environment": 1}', '{"environment": {"SF_X"'], ids=repr
)
def test_a_broken_state_file_is_named(tmp_path, content):
    state = tmp_path / ".runtender" / "local.json"
    state.parent.mkdir()
    state.write_text(content)

    with pytest.raises(Failure, match=r"local\.json is no state file of a local cloud"):
        plane_environment({}, tmp_path)

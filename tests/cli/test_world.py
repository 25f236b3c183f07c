"""Which plane a command talks to: the environment's, or the local cloud of the folder."""

from __future__ import annotations

import pytest

from runtender.cli.exits import Failure, InputFailure
from runtender.cli.world import plane_environment
from runtender.errors import RuntenderError
from runtender.local.home import CloudHome


def test_the_local_cloud_of_a_folder_above_is_used(home, local_variables):
    below = home.folder / "deep" / "below"
    below.mkdir(parents=True)

    assert plane_environment({}, below) == local_variables


def test_a_named_backend_wins_over_the_local_cloud(home):
    assert plane_environment({"SF_BACKEND": "google", "SF_PROJECT_ID": "prod"}, home.folder) == {}


def test_a_project_that_loses_to_the_local_cloud_is_told(home, local_variables, capsys):
    assert plane_environment({"SF_PROJECT_ID": "prod"}, home.folder) == local_variables
    assert "SF_BACKEND=google for prod" in capsys.readouterr().err


def test_a_local_cloud_that_does_not_run_counts_for_nothing(tmp_path, local_variables):
    CloudHome(tmp_path).root.mkdir()
    CloudHome(tmp_path).write_state({"environment": local_variables})

    assert plane_environment({"SF_PROJECT_ID": "prod"}, tmp_path) == {}


def test_the_environment_serves_where_there_is_no_local_cloud(tmp_path):
    assert plane_environment({"SF_PROJECT_ID": "prod"}, tmp_path) == {}


def test_no_plane_at_all_says_what_to_set(tmp_path):
    with pytest.raises(InputFailure, match=r"set SF_PROJECT_ID and SF_CODE_BUCKET.*runtender local up"):
        plane_environment({"HOME": "/root"}, tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"environment": 1}'], ids=repr)
def test_a_broken_state_file_is_named(home, content):
    home.state.write_text(content)

    with pytest.raises((Failure, RuntenderError), match=r"local\.json .*runtender local down"):
        plane_environment({}, home.folder)

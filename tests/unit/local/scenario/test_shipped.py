"""Finding a scenario by its name or its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtender.errors import Rejected
from runtender.local.scenarios import FAIR, descriptions, find_scenario, shipped


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_scenario_has_its_files_name_and_says_what_it_is(name: str) -> None:
    scenario = find_scenario(name)
    assert scenario.name == name
    assert scenario.description
    assert scenario.expect


def test_the_shipped_scenarios_are_listed_with_what_they_are_about() -> None:
    assert set(descriptions()) == set(shipped())
    assert descriptions()["container-exits-3"].startswith("The container ends with code 3")


def test_no_scenario_is_fair_weather() -> None:
    assert find_scenario(None) is FAIR


def test_a_scenario_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nstockouts: [{zone: us-central1-a}]\n")
    assert find_scenario(str(path)).stockouts[0].zone == "us-central1-a"


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        pytest.param(
            "sunny", "scenario: 'sunny' is not known; use one of all-marker-events-lost", id="no name"
        ),
        pytest.param("none.yaml", "scenario: none.yaml cannot be read: No such file", id="no file"),
    ],
)
def test_a_scenario_that_is_not_there_is_named(reference: str, error: str) -> None:
    with pytest.raises(Rejected, match=error):
        find_scenario(reference)

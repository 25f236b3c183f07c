"""What a scenario expects, held against what came."""

from __future__ import annotations

from typing import Any

import pytest

from runtender.local.demo_expectations import findings

FACTS: dict[str, Any] = {
    "outcome": "FAILED",
    "exit_code": 3,
    "detail": "the name 'x' belongs to somebody else",
    "log": "",
    "inserts": 1,
    "within": 80,
}
NOTHING = {"instances": 0, "processes": 0}


def unmet(expect: dict[str, str | int], leftovers: dict[str, int] | None = None) -> list[str]:
    return [each["what"] for each in findings(expect, FACTS, leftovers or NOTHING) if not each["met"]]


@pytest.mark.parametrize(
    ("expect", "expected"),
    [
        pytest.param({"outcome": "FAILED", "exit_code": 3, "inserts": 1}, [], id="as expected"),
        pytest.param({"outcome": "SUCCEEDED", "exit_code": 3}, ["outcome"], id="another outcome"),
        pytest.param({"exit_code": 0, "inserts": 2}, ["exit_code", "inserts"], id="several"),
        pytest.param({"detail": "somebody else"}, [], id="words of the detail"),
        pytest.param({"detail": "nobody"}, ["detail"], id="other words"),
        pytest.param({"log": "hello"}, ["log"], id="no log"),
        pytest.param({"within": 80}, [], id="just in time"),
        pytest.param({"within": 79}, ["within"], id="too late"),
    ],
)
def test_what_did_not_come_as_expected_is_found(expect: dict[str, str | int], expected: list[str]) -> None:
    assert unmet(expect) == expected


def test_a_run_that_never_ended_was_not_in_time() -> None:
    (within, _) = findings({"within": 80}, {"within": None}, NOTHING)
    assert (within["met"], within["expected"], within["found"]) == (False, "at most 80 s", "never")


def test_that_nothing_is_left_is_always_expected() -> None:
    assert unmet({"outcome": "FAILED"}, {"instances": 1, "processes": 0}) == ["leftovers"]
    assert findings({"outcome": "FAILED"}, FACTS, NOTHING)[-1] == {
        "what": "leftovers",
        "expected": "none",
        "found": "none",
        "met": True,
    }


def test_a_scenario_without_expectations_finds_nothing() -> None:
    assert findings({}, FACTS, {"instances": 1}) == []


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        pytest.param({}, "all 315 equal", id="the same"),
        pytest.param({"missing": 2, "examples": ["JFK/theta"]}, "2 missing (JFK/theta)", id="some missing"),
        pytest.param(
            {"added": 1, "different": 3, "examples": ["JFK/theta"]},
            "1 added, 3 different (JFK/theta)",
            id="others",
        ),
        pytest.param({"cells": 0}, "none", id="no cells at all"),
    ],
)
def test_cells_that_were_compared_have_to_be_equal(counts: dict[str, Any], found: str) -> None:
    cells = {
        "run_id": "r-1",
        "cells": 315,
        "missing": 0,
        "added": 0,
        "different": 0,
        "examples": [],
        **counts,
    }
    cells["equal"] = found.startswith("all")

    seen = [
        each for each in findings({"outcome": "FAILED"}, FACTS, NOTHING, cells) if each["what"] == "cells"
    ]

    assert seen == [{"what": "cells", "expected": "those of r-1", "found": found, "met": cells["equal"]}]

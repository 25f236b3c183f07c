"""The demo's last page, from its document."""

from __future__ import annotations

from io import StringIO

import pytest

from runtender.cli.demo_report import demo_exit, demo_parts, unmet
from runtender.cli.drawing import render


def a_demo(outcome: str = "SUCCEEDED", **leftovers: int):
    return {
        "runs": [
            {
                "run_id": "flights-0123456789ab",
                "outcome": outcome,
                "jobs": [
                    {
                        "family": "statistical",
                        "runtime": "gce",
                        "outcome": outcome,
                        "phases": {"provision_s": 12.0, "execute_s": 31.4, "total_wall_s": 45.0},
                        "placements": [
                            {"place": "us-central1-a", "result": "ZONE_RESOURCE_POOL_EXHAUSTED"},
                            {"place": "us-central1-b", "result": "ran"},
                        ],
                    }
                ],
            }
        ],
        "forecast": {
            "series": 105,
            "rows": 38325,
            "models": {"theta": {"mase": 0.91234, "smape": 0.2}, "autoets": {"mase": None, "smape": 0.21}},
            "baseline": {"mase": 1.0, "smape": 0.25},
        },
        "phases": {"start_s": 1.2, "run_s": 61.0},
        "memory": {"peak_mib": 612},
        "events": {"on_submit": 1, "on_tick": 3},
        "calls": {"compute.instances.insert": 2},
        "leftovers": {"instances": 0, "disks": 0, **leftovers},
    }


def lines_of(document):
    text = "\n".join(render(part, StringIO()) for part in demo_parts(document))
    return [" ".join(line.split()) for line in text.splitlines() if line]


def test_the_page_shows_forecast_costs_and_that_nothing_is_left():
    assert lines_of(a_demo()) == [
        "Run flights-0123456789ab",
        "Outcome SUCCEEDED",
        "Jobs",
        "FAMILY RUNTIME OUTCOME PROVISION EXECUTE TOTAL",
        "statistical gce SUCCEEDED 12s 31s 45s",
        "Placements tried",
        "# PLACE RESULT",
        "1 us-central1-a ZONE_RESOURCE_POOL_EXHAUSTED",
        "2 us-central1-b ran",
        "Forecast of 105 series, 38325 rows",
        "MODEL MASE SMAPE",
        "theta 0.912 0.200",
        "autoets - 0.210",
        "seasonal naive 1.000 0.250",
        "Events handled",
        "WHAT COUNT",
        "on_submit 1",
        "on_tick 3",
        "Google API calls",
        "WHAT COUNT",
        "compute.instances.insert 2",
        "This machine",
        "Time start 1s, run 1m01s",
        "Memory 612 MiB at most, all processes together",
        "Leftovers: none",
    ]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        pytest.param({"equal": True}, "Cells all 315 equal those of r-1", id="equal"),
        pytest.param(
            {"equal": False, "missing": 2},
            "Cells not those of r-1, which has 315: 2 missing, 0 added, 0 different",
            id="not equal",
        ),
    ],
)
def test_a_run_that_was_compared_says_so(counts, words):
    document = a_demo()
    document["runs"][0]["cells"] = {
        "run_id": "r-1", "cells": 315, "missing": 0, "added": 0, "different": 0, **counts
    }  # fmt: skip

    assert words in lines_of(document)


def test_what_is_left_over_is_named():
    assert lines_of(a_demo(instances=1, processes=2))[-1] == "Leftovers: 1 instances, 2 processes"


def a_scenario(outcome: str, *, met: bool):
    expectation = {"what": "outcome", "expected": "FAILED", "found": outcome, "met": met}
    return {**a_demo(outcome), "scenario": "preempted", "expectations": [expectation]}


@pytest.mark.parametrize(
    ("document", "line"),
    [(a_scenario("FAILED", met=True), "met"), (a_scenario("SUCCEEDED", met=False), "not met: SUCCEEDED")],
    ids=["met", "not met"],
)
def test_each_expectation_is_shown_as_met_or_not(document, line):
    assert lines_of(document)[-4:-1] == [
        "As the scenario expects it",
        "WHAT EXPECTED FOUND",
        f"outcome FAILED {line}",
    ]


def test_what_did_not_come_as_expected_is_said_in_a_sentence():
    assert unmet(a_scenario("FAILED", met=True)) == []
    assert unmet(a_scenario("SUCCEEDED", met=False)) == [
        "not as scenario preempted expects: outcome is SUCCEEDED, not FAILED"
    ]


def test_why_a_job_ended_is_said_with_it():
    document = a_demo("FAILED")
    document["runs"][0]["jobs"][0] |= {"reason": "Preempted", "detail": "the platform preempted the worker"}
    assert "statistical gce FAILED (Preempted) 12s 31s 45s" in lines_of(document)
    assert "Detail the platform preempted the worker" in lines_of(document)


_ENDS = {
    "failed, as expected": (a_scenario("FAILED", met=True), 3),
    "succeeded, and was not to": (a_scenario("SUCCEEDED", met=False), 1),
    "failed in another way than expected": (a_scenario("FAILED", met=False), 1),
    "succeeded": (a_demo(), 0),
    "something left": (a_demo(disks=1), 1),
    "failed": (a_demo("FAILED"), 3),
    "no capacity, and something left": (a_demo("NO_CAPACITY", disks=1), 5),
}


@pytest.mark.parametrize(("document", "code"), _ENDS.values(), ids=_ENDS)
def test_the_demo_ends_as_its_run_did(document, code):
    assert demo_exit(document) == code

"""The measurements work, and what a run costs in calls, which no machine changes, stays within its aims."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OF_A_LOOK = {"calls": 3, "document reads": 2, "document writes": 1}
FIELDS = {"figure", "value", "unit", "aim", "detail"}


def _run(module, *arguments):
    command = [sys.executable, "-m", f"tests.bench.{module}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=100).stdout


@pytest.fixture(scope="module")
def happy_run():
    return json.loads(_run("happy_run"))


def test_a_happy_run_costs_no_more_than_its_aims(happy_run):
    over = [one for one in happy_run if one["aim"] is not None and one["value"] > one["aim"]]
    assert over == []
    assert [one["aim"] for one in happy_run if one["aim"] is not None] == [10, 12, 6]


def test_an_idle_tick_reads_what_is_due_and_lists_the_fleet(happy_run):
    (tick,) = [one for one in happy_run if one["figure"] == "calls per idle tick"]
    assert (tick["value"], tick["detail"]) == (2, "instances.aggregatedList 1, store.read 1")


def test_a_further_look_costs_three_calls_two_reads_and_one_write_at_most():
    figures = {one["figure"]: one for one in json.loads(_run("long_run"))}
    looks = {name: one["value"] for name, one in figures.items() if name.endswith("per further look")}
    assert looks.keys() == {f"{what} per further look" for what in OF_A_LOOK}
    assert all(looks[f"{what} per further look"] <= most for what, most in OF_A_LOOK.items())
    assert figures["calls per hour of a polling client"]["value"] == 720


def test_a_job_of_many_workers_costs_no_more_than_its_aims_however_long_it_runs():
    figures = json.loads(_run("indexed_job", "--hours", "1"))
    over = [one for one in figures if one["aim"] is not None and one["value"] > one["aim"]]
    assert over == []
    calls = [one for one in figures if one["figure"].startswith("GKE and Kubernetes calls per job")]
    assert [one["aim"] for one in calls] == [8, 8]


def test_a_storm_of_index_events_costs_a_read_each_and_few_steps():
    each, steps, conflicts = json.loads(_run("index_storm", "--workers", "200"))
    assert each["value"] == 1
    assert 0 < steps["value"] <= steps["aim"]
    assert conflicts["value"] <= conflicts["aim"]


def test_index_events_are_taken_in_by_the_plane_and_by_the_bare_handler():
    (rate,) = json.loads(_run("index_rate", "--rounds", "1", "--messages", "40"))
    assert rate["value"] > 0
    assert rate.keys() == FIELDS


def test_each_handler_has_a_floor_of_its_own_calls():
    figures = json.loads(_run("handler_time", "--rounds", "1"))
    assert [one["figure"].split()[2] for one in figures] == ["submit", "started", "tick", "terminal"]
    assert all(one["value"] > 0 and one.keys() == FIELDS for one in figures)


def test_every_message_that_is_counted_is_taken_in_and_every_run_settled():
    figures = json.loads(_run("throughput", "--rounds", "1", "--messages", "5"))
    assert all(one["value"] > 0 and one.keys() == FIELDS for one in figures)


def test_the_memory_of_a_functions_process_is_read_as_events_go_through_it():
    numbers = ["--early", "40", "--late", "80", "--warm-ups", "0", "--time-scale", "100"]
    (memory,) = json.loads(_run("memory", *numbers))
    assert 0.5 < memory["value"] < 2


def test_a_cold_start_is_a_multiple_of_the_framework_alone():
    figures = json.loads(_run("cold_start", "--rounds", "1", "--as-compiled"))
    assert [one["figure"] for one in figures] == [
        f"cold start of {target}" for target in ("on_submit", "on_marker", "on_tick")
    ]
    assert all(one["value"] > 1 and one.keys() == FIELDS for one in figures)


def test_a_plan_is_quick_and_holds_nothing_per_series():
    took, memory = json.loads(_run("planning"))
    # Ten times the aim, so that a machine under load fails no test; what grows with the series would fail any.
    assert took["value"] < 10 * took["aim"]
    assert memory["value"] <= memory["aim"]


def test_the_document_holds_each_figure_and_the_machine_it_was_taken_on(happy_run):
    document = json.loads(_run("run", "--json", "--only", "one happy run"))
    assert document["figures"] == {"one happy run": happy_run}
    assert {"date", "cores", "memory_gib", "python"} <= document["machine"].keys()


def test_the_table_has_a_line_per_figure(happy_run):
    table = _run("run", "--only", "one happy run").splitlines()
    lines = [line for line in table if line.startswith("|")]
    assert [line.split("|")[1].strip() for line in lines[2:]] == [one["figure"] for one in happy_run]
    assert len({len(line) for line in lines}) == 1

"""Measured profiles: which kind of cell they hold for, when they are taken and used, and what a plan says of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtender.forecast.blocks import ProfilePolicy
from runtender.forecast.catalogue import GIB
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.profiles import (
    Profile,
    baselines,
    from_document,
    harvest,
    harvested,
    profile_key,
    to_document,
    usable_profiles,
    wanted_key,
    with_margins,
)

NOW = datetime(2026, 5, 4, tzinfo=UTC)
SUMMARY = {"n_cells": 200, "n_ok": 199, "cell_seconds": 50.0, "peak_rss_bytes": 2 * GIB}
STORED = to_document(harvest(SUMMARY, "r-1"), NOW)  # type: ignore[arg-type]


def profiled(**fields):
    return {"compute": {"profile": fields}}


def test_a_profile_holds_for_one_kind_of_cell(a_config):
    key = profile_key(a_config(), "statistical")
    assert key.startswith("statistical-")
    assert key == profile_key(a_config(run_name="Other", models=["autoets", "theta"]), "statistical")
    for change in (
        {"models": ["theta"]},
        {"model_params": {"theta": {"season_length": 7}}},
        {"backtest": {"windows": 3}},
        {"data": {"source_table": "gs://p/p.csv", "horizon": 7}},
        {"data": {"source_table": "gs://p/p.csv", "freq": "W"}},
    ):
        assert key != profile_key(a_config(**change), "statistical"), change


@pytest.mark.parametrize(
    ("policy", "n_cells", "taken"),
    [
        pytest.param({}, 999, False, id="a small run says little"),
        pytest.param({}, 1000, True, id="a large one is measured"),
        pytest.param({"mode": "always"}, 1, True, id="always"),
        pytest.param({"mode": "off"}, 10**6, False, id="off"),
        pytest.param({"mode": "always", "measure": "off"}, 10**6, False, id="used, not measured"),
    ],
)
def test_a_run_is_measured_when_it_can_say_something(plan, policy, n_cells, taken):
    planned = plan(**profiled(**policy))["statistical"]
    found = harvested(planned.resource_plan, {**SUMMARY, "n_cells": n_cells}, "r-9", NOW)
    assert bool(found) is taken


LARGE = {"source_table": "gs://p/p.csv", "series_limit": 500}


@pytest.mark.parametrize(
    ("policy", "data", "key"),
    [
        pytest.param({}, LARGE, "kind", id="auto, and large"),
        pytest.param({}, {**LARGE, "series_limit": 499}, None, id="auto, and small"),
        pytest.param({}, {"source_table": "gs://p/p.csv"}, None, id="auto, and nobody knows how large"),
        pytest.param({"mode": "always"}, {"source_table": "gs://p/p.csv"}, "kind", id="always"),
        pytest.param({"source": "r-1"}, LARGE, "r-1-statistical", id="a run's own"),
        pytest.param({"source": "baseline"}, LARGE, None, id="the shipped one is not stored"),
        pytest.param({"source": "none"}, LARGE, None, id="none"),
        pytest.param({"mode": "off"}, LARGE, None, id="off"),
    ],
)
def test_the_config_says_which_profile_is_used(a_config, policy, data, key):
    config = a_config(data=data, **profiled(**policy))
    assert wanted_key(config, "statistical") == (profile_key(config, "statistical") if key == "kind" else key)


def test_a_summary_tells_memory_and_time_of_a_cell():
    assert harvest(SUMMARY, "r-1") == Profile(
        memory_bytes=2 * GIB, seconds_per_cell=0.25, n_cells=200, run_id="r-1"
    )


@pytest.mark.parametrize(
    "summary",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"n_cells": 0, "cell_seconds": 1.0}, id="no cells"),
        pytest.param({"n_cells": 5}, id="cells that say nothing"),
        pytest.param({"n_cells": 5, "cell_seconds": "1", "peak_rss_bytes": True}, id="other types"),
        pytest.param({"n_cells": 5, "cell_seconds": float("inf")}, id="no number"),
    ],
)
def test_a_summary_that_says_nothing_gives_no_profile(summary):
    assert harvest(summary, "r-1") is None


@given(
    memory=st.none() | st.integers(1, 2**50),
    seconds=st.none() | st.floats(1e-6, 1e6),
    cells=st.integers(1, 10**9),
)
def test_a_profile_is_read_back_as_it_was_stored(memory, seconds, cells):
    profile = Profile(memory_bytes=memory, seconds_per_cell=seconds, n_cells=cells, run_id="r")
    assert from_document(to_document(profile, NOW)) == profile


def test_margins_are_laid_on_when_a_profile_is_used():
    used = with_margins(Profile(memory_bytes=1000, seconds_per_cell=2.0), ProfilePolicy())
    assert used.memory_bytes == 1300
    assert used.seconds_per_cell == pytest.approx(2.4)


def test_a_measured_cell_bounds_the_slots_and_the_plan_says_so(a_config, plan):
    documents = {"statistical": STORED}
    profiles = usable_profiles(a_config(), ["statistical"], documents)
    planned = plan(knowledge=Knowledge(profiles=profiles))["statistical"]
    sizing = planned.resource_plan
    # 70 % of 32 GiB over 2 GiB and a margin of 1.3
    assert (planned.slots, sizing["slot"]["basis"]) == (7, "measured")
    assert (sizing["slot"]["measured"], sizing["slot"]["assumed"]) == (["memory"], ["cores"])
    assert sizing["profile"]["used"] == {"run_id": "r-1", "n_cells": 200}
    assert sizing["wall_estimate_s"] == 86  # 2000 cells of 0.25 s and a margin of 1.2, 7 at once


def test_memory_that_binds_is_said(a_config, plan):
    documents = {"statistical": {**STORED, "memory_bytes": 4 * GIB}}
    profiles = usable_profiles(a_config(), ["statistical"], documents)
    sizing = plan(knowledge=Knowledge(profiles=profiles))["statistical"].resource_plan
    assert (sizing["binding_axis"], sizing["slots_per_unit"]) == ("memory", 4)


def test_a_need_beyond_the_machine_is_cut_with_a_note(a_config, plan):
    documents = {"statistical": {**STORED, "memory_bytes": 400 * GIB, "cores": 64}}
    profiles = usable_profiles(a_config(), ["statistical"], documents)
    slot = plan(knowledge=Knowledge(profiles=profiles))["statistical"].resource_plan["slot"]
    assert (slot["cores"], slot["memory_bytes"]) == (7, 32 * GIB * 7 // 10 * 85 // 100)
    assert len(slot["notes"]) == 2


@pytest.mark.parametrize(
    ("fields", "used"),
    [
        pytest.param({}, {}, id="never measured"),
        pytest.param({"source": "baseline"}, {"statistical"}, id="the shipped baseline"),
        pytest.param({"mode": "off", "source": "baseline"}, {}, id="off"),
    ],
)
def test_without_a_measure_nothing_is_made_up(a_config, fields, used):
    config = a_config(**profiled(**fields))
    assert set(usable_profiles(config, ["statistical", "ml"], {"statistical": None})) == set(used)


def test_a_baseline_says_how_it_was_measured():
    for document in baselines().values():
        assert document["source"]
        assert document["measured_at"]


def test_a_job_is_harvested_by_its_own_plan(a_config, plan):
    planned = plan(**profiled(mode="always"))["statistical"]
    documents = harvested(planned.resource_plan, SUMMARY, "r-9", NOW)
    config = a_config(**profiled(mode="always"))
    assert f"profiles/{profile_key(config, 'statistical')}" in documents
    assert len(documents) == 2
    assert {document["run_id"] for document in documents.values()} == {"r-9"}


@pytest.mark.parametrize("resource_plan", [None, {}, {"profile": None}, {"profile": {"keep_as": []}}])
def test_a_job_that_was_not_to_be_measured_leaves_nothing(resource_plan):
    assert harvested(resource_plan, SUMMARY, "r-9", NOW) == {}


def test_measuring_apart_is_not_done_and_said(plan):
    note = plan(**profiled(mode="always", measure="controlled"))["statistical"].resource_plan["profile"]
    assert note["keep_as"]
    assert "controlled" in note["notes"][0]

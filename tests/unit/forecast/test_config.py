"""Reading a run config: every fault at once, each with its field and what to write."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtender.errors import Fault, Rejected
from runtender.forecast.blocks import FamilyOverride, PanelData
from runtender.forecast.config import parse_config


def faults_of(raw):
    with pytest.raises(Rejected) as rejected:
        parse_config(raw)
    return {fault.field: fault for fault in rejected.value.faults}


def test_what_is_left_out_gets_its_default(a_config):
    config = a_config()
    assert config.data == PanelData(
        source_table="gs://panels/flights.csv", ts_id_col="ts_id", date_col="ds", target_col="y",
        freq="D", horizon=28, series_limit=None,
    )  # fmt: skip
    compute = config.compute
    assert (compute.max_parallelism, compute.machine_type, compute.workers) == (1000, "auto", 1)
    assert (compute.use_gpu, compute.gpu_type, compute.accelerator_count) == (False, "T4", 1)
    assert (compute.gpu_fraction, compute.budget_usd, compute.profile.memory_margin) == (None, 50.0, 1.3)
    assert (compute.capacity.enabled, compute.capacity.preflight, compute.capacity.services) == (
        True,
        True,
        {},
    )
    assert (config.ensemble_enabled, config.hierarchy_enabled) == (False, False)


def test_the_runtime_is_spark_where_none_is_written(config_json):
    raw = config_json()
    del raw["python_runtime"]
    assert parse_config(raw).python_runtime == "spark"


def test_all_faults_are_named_together(config_json):
    raw = config_json(
        models=["theta", "atuoets", "theta"],
        data={"source_table": "gs://p/x.csv", "horizon": 0, "frequency": "D"},
        compute={"workers": 0, "families": {"statistics": {}}, "profile": {"mode": "on"}},
        modles=[],
    )
    del raw["run_name"]
    assert list(faults_of(raw)) == [
        "run_name",
        "modles",
        "data.horizon",
        "data.frequency",
        "models[1]",
        "models",
        "compute.workers",
        "compute.profile.mode",
        "compute.families.statistics",
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        pytest.param(
            {"modles": []},
            Fault(field="modles", problem='"modles" is not a known field', remedy='did you mean "models"?'),
            id="unknown field",
        ),
        pytest.param(
            {"models": ["thta"]},
            Fault(field="models[0]", problem='"thta" is not a known model', remedy='did you mean "theta"?'),
            id="unknown model",
        ),
        pytest.param(
            {"models": "theta"},
            Fault(
                field="models",
                problem='"theta" is not accepted',
                remedy="it must be a list that is not empty, each entry a text of at most 1024 characters",
            ),
            id="wrong type",
        ),
        pytest.param(
            {"data": {}},
            Fault(
                field="data.source_table",
                problem="is missing",
                remedy="it must be a text of at most 1024 characters",
            ),
            id="missing data",
        ),
        pytest.param(
            {"compute": {"families": {"statistcal": {}}}},
            Fault(
                field="compute.families.statistcal",
                problem='"statistcal" is not a family',
                remedy='did you mean "statistical"?',
            ),
            id="unknown family",
        ),
        pytest.param(
            {"python_runtime": "gcp"},
            Fault(
                field="python_runtime",
                problem='"gcp" is not accepted',
                remedy="it must be one of spark, ray, vertex, gce, gke, vertex_automl",
            ),
            id="unknown runtime",
        ),
    ],
)
def test_a_fault_says_where_what_and_what_to_do(config_json, change, fault):
    assert faults_of(config_json(**change))[fault.field] == fault


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"run_name": ""}, "run_name", id="empty name"),
        pytest.param({"run_name": "x" * 129}, "run_name", id="endless name"),
        pytest.param({"run_name": "a\ud800"}, "run_name", id="half a character"),
        pytest.param({"models": []}, "models", id="no models"),
        pytest.param({"data": []}, "data", id="data is a list"),
        pytest.param({"data": {"source_table": "t", "series_limit": 0}}, "data.series_limit", id="no series"),
        pytest.param(
            {"data": {"source_table": "t", "horizon": True}}, "data.horizon", id="true is no number"
        ),
        pytest.param({"compute": {"gpu_fraction": 0}}, "compute.gpu_fraction", id="no share of a GPU"),
        pytest.param({"compute": {"gpu_fraction": 1.5}}, "compute.gpu_fraction", id="more than a GPU"),
        pytest.param({"compute": {"gpu_safety_margin": 1}}, "compute.gpu_safety_margin", id="no margin"),
        pytest.param({"compute": {"budget_usd": float("nan")}}, "compute.budget_usd", id="no number"),
        pytest.param({"compute": {"gpu_type": "H9000"}}, "compute.gpu_type", id="unknown GPU"),
        pytest.param(
            {"compute": {"gpu_type": "L4", "accelerator_count": 3}}, "compute.accelerator_count", id="3 x L4"
        ),
        pytest.param({"compute": {"ray_regions": []}}, "compute.ray_regions", id="no regions"),
        pytest.param(
            {"python_runtime": "ray", "compute": {"min_workers": 4, "max_workers": 2}},
            "compute.min_workers",
            id="range upside down",
        ),
        pytest.param(
            {"compute": {"ensemble": {"mode": "later"}}}, "compute.ensemble.mode", id="ensemble mode"
        ),
        pytest.param(
            {"compute": {"capacity": {"gce": {"backoff_multiplier": 0.5}}}},
            "compute.capacity.gce.backoff_multiplier",
            id="acceptance-F30 multiplier",
        ),
        pytest.param(
            {"compute": {"capacity": {"gce": {"max_attempts": -1}}}},
            "compute.capacity.gce.max_attempts",
            id="acceptance-F30 negative bound",
        ),
        pytest.param(
            {"compute": {"capacity": {"gce": {"patience": 1}}}},
            "compute.capacity.gce.patience",
            id="acceptance-F30 unknown field",
        ),
        pytest.param(
            {"compute": {"capacity": {"retry": {"max_executors": 0}}}},
            "compute.capacity.retry.max_executors",
            id="no executors",
        ),
        pytest.param({"model_params": {"thta": {}}}, "model_params.thta", id="parameters of no model"),
        pytest.param({"model_params": {"theta": []}}, "model_params.theta", id="parameters are a list"),
        pytest.param({"model_params": {"theta": {"a": float("inf")}}}, "model_params.theta.a", id="infinite"),
        pytest.param(
            {"model_params": {"theta": {"a": {"b": 1}}}}, "model_params.theta.a", id="nested parameter"
        ),
        pytest.param({"features": {"x": [float("nan")]}}, "features", id="what JSON cannot say"),
        pytest.param({"ensemble": {"enabled": "yes"}}, "ensemble.enabled", id="yes is no truth value"),
    ],
)
def test_a_value_that_cannot_be_is_a_fault_of_its_field(config_json, change, field):
    assert list(faults_of(config_json(**change))) == [field]


@pytest.mark.parametrize("raw", [[], "config", 7, None])
def test_a_config_that_is_no_object_is_one_fault(raw):
    assert "config" in faults_of(raw)


def test_the_workers_blocks_pass_through_untouched(a_config):
    blocks = {"backtest": {"windows": 3, "any": {"thing": [1, "x", None]}}, "features": {"calendar": True}}
    config = a_config(**blocks)
    assert {"backtest": config.backtest, "features": config.features} == blocks


@pytest.mark.parametrize(
    ("compute", "machine", "workers"),
    [
        pytest.param({"vertex_machine_type": "e2-standard-4"}, "e2-standard-4", 1, id="machine"),
        pytest.param(
            {"vertex_machine_type": "e2-standard-4", "machine_type": "auto"}, "auto", 1, id="new name wins"
        ),
        pytest.param(
            {"vertex_gpu_machine_type": "n1-standard-16"}, "auto", 1, id="GPU machine without a GPU"
        ),
        pytest.param(
            {
                "vertex_machine_type": "e2-standard-4",
                "vertex_gpu_machine_type": "n1-standard-16",
                "use_gpu": True,
            },
            "n1-standard-16",
            1,
            id="GPU machine",
        ),
        pytest.param({"vertex_workers": 3}, "auto", 3, id="workers"),
    ],
)
def test_old_names_are_still_understood(a_config, compute, machine, workers):
    config = a_config(compute=compute, python_runtime="vertex")
    assert (config.compute.machine_type, config.compute.workers) == (machine, workers)


def test_a_fault_in_an_old_name_is_reported_under_it(config_json):
    assert list(faults_of(config_json(compute={"vertex_workers": 0}))) == ["compute.vertex_workers"]


def test_a_family_override_says_only_what_it_changes(a_config):
    config = a_config(compute={"families": {"ml": {"machine_type": "c2-standard-8", "workers": None}}})
    assert config.compute.families == {"ml": FamilyOverride(machine_type="c2-standard-8")}


NAMES = st.sampled_from(
    "run_name data models compute model_params features hierarchy source_table families capacity profile "
    "workers enabled gpu_type ml gce theta x".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=20,
)


@given(JSON)
def test_whatever_json_comes_it_is_read_or_rejected(raw):
    with suppress(Rejected):
        parse_config(raw)


@given(st.dictionaries(NAMES, JSON, max_size=4))
def test_whatever_stands_in_the_compute_block_it_is_read_or_rejected(compute):
    raw = {"run_name": "r", "data": {"source_table": "t"}, "models": ["theta", "tide"], "compute": compute}
    with suppress(Rejected):
        parse_config(raw)


def test_nobody_reads_more_than_fifty_faults(config_json):
    raw = config_json(**{f"field_{number}": 1 for number in range(5000)})
    with pytest.raises(Rejected) as rejected:
        parse_config(raw)
    assert len(rejected.value.faults) == 51
    assert rejected.value.faults[-1].problem == "there are more faults"


def test_a_document_without_bottom_is_refused_before_it_is_read(config_json):
    bottomless: list[object] = []
    for _ in range(5000):
        bottomless = [bottomless]
    assert list(faults_of(config_json(backtest={"x": bottomless}))) == ["config"]


def test_an_endless_name_does_not_make_an_endless_message(config_json):
    assert len(str(faults_of(config_json(**{"x" * 100_000: 1})).popitem()[1])) < 600

"""A run's identity: the same for the same forecast, another for anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtender.forecast.canonical import run_id_of, to_canonical, to_document
from runtender.forecast.config import COMPUTE_FIELDS, parse_config

BASE: dict[str, Any] = {
    "run_name": "Flights",
    "data": {"source_table": "gs://panels/flights.csv"},
    "models": ["theta", "autoets"],
    "python_runtime": "gce",
}


def run_id(**fields: Any) -> str:
    return run_id_of(parse_config({**BASE, **fields}))


def test_a_run_id_is_the_slug_and_twelve_digits():
    slug, digest = run_id().rsplit("-", 1)
    assert (slug, len(digest)) == ("flights", 12)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {"compute": {"capacity": {"enabled": False, "gce": {"max_attempts": 1}}}}, id="acceptance-H20"
        ),
        pytest.param({"compute": {"profile": {"source": "baseline"}}}, id="where profiles come from"),
        pytest.param({"compute": {"workers": 1, "machine_type": "auto"}}, id="defaults written out"),
        pytest.param({"compute": {"budget_usd": 50}}, id="a whole number for a fraction"),
        pytest.param(
            {"data": {"freq": "D", "source_table": "gs://panels/flights.csv"}}, id="another order of keys"
        ),
        pytest.param(
            {"features": {"exog_lags": {}, "on_unsupported_covariates": "fallback"}}, id="unused features"
        ),
        pytest.param({"features": {"lags": []}}, id="no lags"),
        pytest.param({"hierarchy": {"enabled": False}}, id="no hierarchy"),
    ],
)
def test_what_asks_for_the_same_forecast_is_the_same_run(fields):
    assert run_id(**fields) == run_id()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"models": ["autoets", "theta"]}, id="order of models"),
        pytest.param({"data": {"source_table": "gs://panels/flights.csv", "horizon": 7}}, id="horizon"),
        pytest.param({"python_runtime": "gke"}, id="runtime"),
        pytest.param({"compute": {"max_parallelism": 10}}, id="parallelism"),
        pytest.param({"compute": {"profile": {"mode": "off"}}}, id="profiling"),
        pytest.param(
            {"compute": {"families": {"ml": {"machine_type": "c2-standard-8"}}}}, id="a family's machine"
        ),
        pytest.param({"model_params": {"theta": {"season_length": 7}}}, id="a model's parameter"),
        pytest.param({"features": {"lags": [1]}}, id="lags"),
        pytest.param({"features": {"future_covariates": ["promo"]}}, id="covariates"),
        pytest.param({"hierarchy": {"enabled": True}}, id="hierarchy"),
        pytest.param({"backtest": {"windows": 2}}, id="backtest"),
    ],
)
def test_any_other_change_makes_another_run(fields):
    assert run_id(**fields) != run_id()


def test_the_canonical_config_keeps_the_shape_that_old_runs_were_named_by():
    canonical = to_canonical(parse_config({**BASE, "compute": {"families": {"ml": {"machine_type": None}}}}))
    compute = canonical["compute"]
    assert "hierarchy" not in canonical
    assert canonical["features"] == {"lags": []}
    assert not {"capacity", "machine_type", "workers", "min_workers", "max_workers"} & compute.keys()
    assert "source" not in compute["profile"]
    assert compute["ensemble"] == {
        "runtime": "spark",
        "spark_mode": None,
        "spark_cluster_name": None,
        "mode": "barrier",
        "microbatch_interval_s": 60.0,
    }
    dropped = {"machine_type", "workers", "min_workers", "max_workers", "accelerator_count"}
    assert not dropped & compute["families"]["ml"].keys()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="defaults"),
        pytest.param(
            {"compute": {"gpu_fraction": 0.25, "ray_regions": ["us-east1"]}}, id="numbers and lists"
        ),
        pytest.param(
            {"compute": {"capacity": {"gce": {"max_attempts": 3}, "retry": {"max_executors": 2}}}},
            id="capacity",
        ),
        pytest.param({"compute": {"families": {"ml": {"workers": 1}}}}, id="families"),
        pytest.param(
            {"model_params": {"theta": {"a": [1, 2]}}, "backtest": {"w": [1, {"x": None}]}}, id="blocks"
        ),
    ],
)
def test_the_document_is_read_back_to_an_equal_config(fields):
    document = to_document(parse_config({**BASE, **fields}))
    again = parse_config(json.loads(json.dumps(document)))
    assert to_document(again) == document
    assert run_id_of(again) == run_id(**fields)


@given(st.permutations(list(BASE)))
def test_a_run_id_does_not_depend_on_the_order_of_keys(names):
    assert run_id_of(parse_config({name: BASE[name] for name in names})) == run_id()


def another(kind, value):
    """A value that the field takes and that is not this one."""
    candidates = (not value, 2, 3, 0.75, 1.5, 99.5, "another", *kind.schema.get("enum", ()), ["us-east1"])
    return next(candidate for candidate in candidates if kind.accepts(candidate) and candidate != value)


COMPUTE_DEFAULTS = {
    name: default
    for name, default in to_document(parse_config({**BASE, "python_runtime": "spark"}))["compute"].items()
    if name in COMPUTE_FIELDS and not isinstance(default, dict)
}


@pytest.mark.parametrize("name", COMPUTE_DEFAULTS)
def test_any_other_compute_makes_another_run(name):
    value = COMPUTE_DEFAULTS[name]
    if name == "min_workers":
        compute = {"min_workers": 2, "max_workers": 9}
    elif name == "accelerator_count":
        compute = {name: 4}
    else:
        compute = {name: another(COMPUTE_FIELDS[name], value)}
    base = {**BASE, "python_runtime": "spark"}
    assert run_id_of(parse_config({**base, "compute": compute})) != run_id_of(parse_config(base))


@given(st.integers(1, 10_000), st.sampled_from(["D", "W", "M"]), st.integers(1, 400))
def test_two_configs_have_one_run_id_only_when_they_ask_for_the_same(limit, freq, horizon):
    def build(**data):
        return run_id_of(parse_config({**BASE, "data": {**BASE["data"], **data}}))

    one = build(series_limit=limit, freq=freq, horizon=horizon)
    assert one == build(horizon=horizon, freq=freq, series_limit=limit)
    assert one != build(series_limit=limit + 1, freq=freq, horizon=horizon)
    assert one != build(series_limit=limit, freq=freq, horizon=horizon + 1)

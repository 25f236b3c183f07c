"""Families: who runs what."""

from __future__ import annotations

import pytest

from runtender.forecast import families
from runtender.worker import topology


@pytest.mark.parametrize(
    ("family", "count"),
    [("statistical", 18), ("ml", 5), ("deep_learning", 5), ("native", 2), ("automl", 4)],
)
def test_every_family_has_its_models(family, count):
    assert len(families.MODELS_BY_FAMILY[family]) == count


def test_no_model_belongs_to_two_families():
    assert len(families.FAMILY_OF) == sum(len(models) for models in families.MODELS_BY_FAMILY.values())


def test_planner_and_worker_agree_on_the_deep_learning_models():
    assert set(families.MODELS_BY_FAMILY["deep_learning"]) == topology.DEEP_LEARNING_MODELS


def test_models_are_split_by_who_runs_them_in_the_configs_order():
    models = ["tide", "arima_plus", "theta", "vertex_tide", "timesfm"]
    assert families.split_by_runtime(models) == (("tide", "theta"), ("arima_plus", "timesfm"))


def test_families_come_in_first_seen_order():
    assert families.pool_families(["tide", "theta", "tft", "xgboost"]) == (
        "deep_learning",
        "statistical",
        "ml",
    )


@pytest.mark.parametrize(
    ("params", "panel"),
    [
        pytest.param({}, (), id="local by default"),
        pytest.param({"tide": {"training_mode": "global"}}, ("tide",), id="global"),
        pytest.param({"neuralprophet": {"training_mode": "hybrid"}}, ("neuralprophet",), id="hybrid"),
        pytest.param({"tide": {"training_mode": "hybrid"}}, (), id="hybrid is neuralprophet's only"),
        pytest.param({"theta": {"training_mode": "global"}}, (), id="a statistical model is never one"),
    ],
)
def test_panel_models_are_those_that_train_on_all_series(params, panel):
    assert families.panel_models(["theta", "tide", "neuralprophet"], params) == panel

"""The models of this worker: each really forecasts, and what it lacks is said before work starts."""

from __future__ import annotations

import numpy as np
import pytest

from forecast_worker.models import MODELS, build, faults
from runtender.forecast.families import MODELS_BY_FAMILY

HISTORY = 50 + 10 * np.sin(np.arange(84) * 2 * np.pi / 7) + np.random.default_rng(1).normal(0, 1, 84)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_forecasts(model):
    forecast = build(model, 7, {}).forecast(y=HISTORY, h=7)["mean"]

    assert forecast.shape == (7,)
    assert np.abs(forecast - 50).max() < 20


@pytest.mark.parametrize("model", [model for model in MODELS if model != "holtwinters"])
def test_a_model_forecasts_without_a_season(model):
    assert np.isfinite(build(model, 1, {}).forecast(y=HISTORY, h=3)["mean"]).all()


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        pytest.param("autoets", {"model": "ANN"}, id="an exponential smoothing by its letters"),
        pytest.param(
            "sarimax", {"order": [1, 0, 0], "seasonal_order": [0, 0, 0]}, id="lists of JSON become tuples"
        ),
        pytest.param("naive_moving_average", {"window_size": 3}, id="a window in place of the season"),
        pytest.param("theta", {"training_mode": "local"}, id="the planner's parameter is not the model's"),
    ],
)
def test_parameters_reach_the_model(model, parameters):
    assert faults([model], {model: parameters}) == []
    given = build(model, 7, parameters).forecast(y=HISTORY, h=3)["mean"]
    usual = build(model, 7, {}).forecast(y=HISTORY, h=3)["mean"]

    assert np.array_equal(given, usual) == ("training_mode" in parameters)


def test_every_model_is_one_of_the_catalogues_statistical_ones():
    assert set(MODELS) <= set(MODELS_BY_FAMILY["statistical"])


@pytest.mark.parametrize(
    ("models", "parameters", "expected"),
    [
        pytest.param(["theta", "autoets"], {}, [], id="all there"),
        pytest.param(
            ["theta", "prophet", "tide"],
            {},
            [f"models: this worker has no prophet, tide; it has {', '.join(MODELS)}"],
            id="two it lacks",
        ),
        pytest.param(
            ["naive_mean", "auto_ces"],
            {"auto_ces": {"modle": "N"}, "naive_mean": {"x": 1}, "theta": {"y": 1}},
            [
                "model_params.naive_mean.x: not available here; naive_mean takes no parameters",
                "model_params.auto_ces.modle: not available here; auto_ces takes model, season_length",
            ],
            id="parameters of the chosen models",
        ),
        pytest.param(
            ["theta"],
            {"theta": {"training_mode": "global"}},
            [
                "model_params.theta.training_mode: not available here; theta takes decomposition_type, season_length"
            ],
            id="no panel models",
        ),
    ],
)
def test_what_cannot_be_done_is_said(models, parameters, expected):
    assert faults(models, parameters) == expected

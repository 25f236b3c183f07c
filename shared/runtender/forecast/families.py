"""Which models there are, which family each belongs to, and who runs it.

A family is what becomes a job: its models share hardware needs, so they share a worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runtender.worker import topology

MODELS_BY_FAMILY: Mapping[str, tuple[str, ...]] = {
    "statistical": (
        "naive_mean",
        "naive_seasonal",
        "naive_drift",
        "naive_moving_average",
        "croston",
        "fft",
        "theta",
        "auto_theta",
        "holtwinters",
        "autoets",
        "auto_ces",
        "tbats",
        "stl_bagging",
        "auto_arima",
        "sarimax",
        "ucm",
        "kalman",
        "prophet",
    ),
    "ml": ("regression_lags", "random_forest", "lightgbm", "xgboost", "catboost"),
    "deep_learning": ("neuralprophet", "tide", "tft", "tsmixer", "patchtst"),
    "native": ("arima_plus", "timesfm"),
    "automl": ("vertex_l2l", "vertex_tide", "vertex_tft", "vertex_seq2seq"),
}

FAMILY_OF: Mapping[str, str] = {
    model: family for family, models in MODELS_BY_FAMILY.items() for model in models
}

PYTHON_FAMILIES = ("statistical", "ml", "deep_learning")
"""Families whose models run in our worker. `native` runs in BigQuery, `automl` on Vertex AI."""

GPU_FAMILIES = frozenset({"deep_learning", "automl"})
"""Families that a GPU makes faster; the others never get one from a config."""


def split_by_runtime(models: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the Python models and the BigQuery models, each in the given order."""
    ordered = tuple(models)
    python = tuple(m for m in ordered if FAMILY_OF[m] in PYTHON_FAMILIES)
    return python, tuple(m for m in ordered if FAMILY_OF[m] == "native")


def pool_families(models: Iterable[str]) -> tuple[str, ...]:
    """Return the families of `models`, each once, in first-seen order."""
    return tuple(dict.fromkeys(FAMILY_OF[model] for model in models))


def models_of(models: Iterable[str], family: str) -> tuple[str, ...]:
    """Return those of `models` that belong to `family`, in the given order."""
    return tuple(model for model in models if FAMILY_OF[model] == family)


def panel_models(models: Iterable[str], model_params: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return those of `models` that train once on all series, by their `training_mode` (default `local`)."""
    modes = {
        model: str(parameters["training_mode"])
        for model, parameters in model_params.items()
        if "training_mode" in parameters
    }
    panel = topology.panel_models(modes)
    return tuple(model for model in models if model in panel)

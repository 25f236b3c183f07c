"""A run config as JSON again: all of it for the worker, and the part that gives a run its identity.

Two configs that ask for the same forecast have the same run id, whatever the order of their keys, whether
defaults were written out, how patiently capacity is looked for and where measured profiles come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from runtender import ids
from runtender.forecast.blocks import Capacity, Compute, RunConfig

_FEATURE_DEFAULTS: Mapping[str, Any] = {
    "exog_lags": {},
    "static_covariates": [],
    "future_covariates": [],
    "past_covariates": [],
    "on_unsupported_covariates": "fallback",
}
# What later configs gained is left out while unused, so that older runs keep their ids.
_DROPPED_DEFAULTS = ("machine_type", "workers", "min_workers", "max_workers")
_DROPPED_NULLS = ("machine_type", "workers", "min_workers", "max_workers", "accelerator_count")
# What older configs had and newer ones lost is put back, for the same reason.
_OLD_ENSEMBLE: Mapping[str, Any] = {"runtime": "spark", "spark_mode": None, "spark_cluster_name": None}
_HIERARCHY_DEFAULT = {"enabled": False}


def to_document(config: RunConfig) -> dict[str, Any]:
    """Return the config with every default written out; `parse_config` reads it back to an equal config."""
    document: dict[str, Any] = _plain(config)
    compute = document["compute"]
    compute["gpu_fraction"] = "auto" if config.compute.gpu_fraction is None else config.compute.gpu_fraction
    compute["capacity"] = _capacity(config.compute.capacity)
    return document


def to_canonical(config: RunConfig) -> dict[str, Any]:
    """Return the document whose digest is the run's identity."""
    document = to_document(config)
    document["features"] = _features(config.features)
    document["compute"] = _compute(document["compute"])
    if {**_HIERARCHY_DEFAULT, **config.hierarchy} == _HIERARCHY_DEFAULT:
        del document["hierarchy"]
    return document


def run_id_of(config: RunConfig) -> str:
    """Return the run id of a config."""
    return ids.run_id(config.run_name, to_canonical(config))


def _features(features: Mapping[str, Any]) -> dict[str, Any]:
    full = {"lags": [], **_FEATURE_DEFAULTS, **features}
    return {
        name: value
        for name, value in full.items()
        if name not in _FEATURE_DEFAULTS or value != _FEATURE_DEFAULTS[name]
    }


def _compute(document: Mapping[str, Any]) -> dict[str, Any]:
    default = Compute()
    compute = {
        name: value
        for name, value in document.items()
        if name != "capacity" and not (name in _DROPPED_DEFAULTS and value == getattr(default, name))
    }
    compute["profile"] = {name: value for name, value in document["profile"].items() if name != "source"}
    compute["ensemble"] = {**_OLD_ENSEMBLE, **document["ensemble"]}
    compute["families"] = {
        family: {n: v for n, v in override.items() if not (n in _DROPPED_NULLS and v is None)}
        for family, override in document["families"].items()
    }
    return compute


def _capacity(capacity: Capacity) -> dict[str, Any]:
    return {
        "enabled": capacity.enabled,
        "preflight": capacity.preflight,
        "wait_for_quota": capacity.wait_for_quota,
        "retry": {"max_executors": capacity.retry_max_executors},
        **{service: dict(policy) for service, policy in capacity.services.items()},
    }


def _plain(value: Any) -> Any:
    """Return nested tuples, mappings and dataclasses as JSON's lists and objects."""
    if value is None or isinstance(value, str | int | float):
        return value
    # Not `dataclasses.asdict` and then this: that copies deeply, and a submit asks for its run id more than once.
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value

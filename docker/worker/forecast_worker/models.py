"""Which of the catalogue's models this worker has, and which statsforecast class is behind each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

BASELINE = "naive_seasonal"


class Forecaster(Protocol):
    """The part of a statsforecast model that is used here."""

    def forecast(self, y: npt.NDArray[np.float64], h: int) -> Mapping[str, npt.NDArray[np.float64]]:
        """Fit on `y` and forecast `h` periods; the point forecast is under `mean`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """A statsforecast class, the argument that takes the season, defaults, what `model_params` may set."""

    name: str
    season: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    settable: frozenset[str] = frozenset()


_KINDS = {
    "naive_mean": _Kind(name="HistoricAverage"),
    "naive_seasonal": _Kind(name="SeasonalNaive", season="season_length"),
    "naive_drift": _Kind(name="RandomWalkWithDrift"),
    "naive_moving_average": _Kind(name="WindowAverage", season="window_size"),
    "croston": _Kind(name="CrostonClassic"),
    "theta": _Kind(name="Theta", season="season_length", settable=frozenset({"decomposition_type"})),
    "auto_theta": _Kind(
        name="AutoTheta", season="season_length", settable=frozenset({"decomposition_type", "model"})
    ),
    "holtwinters": _Kind(name="HoltWinters", season="season_length", settable=frozenset({"error_type"})),
    "autoets": _Kind(name="AutoETS", season="season_length", settable=frozenset({"model", "damped", "phi"})),
    "auto_ces": _Kind(name="AutoCES", season="season_length", settable=frozenset({"model"})),
    "tbats": _Kind(
        name="TBATS",
        season="season_length",
        settable=frozenset({"use_boxcox", "use_trend", "use_damped_trend", "use_arma_errors"}),
    ),
    "auto_arima": _Kind(
        name="AutoARIMA",
        season="season_length",
        settable=frozenset(
            {"d", "D", "max_p", "max_q", "max_P", "max_Q", "max_d", "max_D", "ic", "stepwise"}
        ),
    ),
    # Orders are the caller's choice; without one, the airline model (Box and Jenkins) is the usual first try.
    "sarimax": _Kind(
        name="ARIMA",
        season="season_length",
        defaults={"order": (0, 1, 1), "seasonal_order": (0, 1, 1)},
        settable=frozenset({"order", "seasonal_order", "include_mean", "include_drift"}),
    ),
    "ucm": _Kind(
        name="UCM", season="seasonal", settable=frozenset({"level", "trend", "cycle", "autoregressive"})
    ),
}

MODELS = tuple(_KINDS)
"""The names of the models that `build` knows."""

# `training_mode` is read by the planner; a local model is the only kind there is here.
_PLANNER_PARAMETERS = {"training_mode": "local"}


def faults(models: Iterable[str], model_params: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say what this worker cannot do of what is asked: models it lacks, parameters they do not take."""
    chosen = tuple(models)
    unknown = [model for model in chosen if model not in _KINDS]
    found = []
    if unknown:
        found.append(f"models: this worker has no {', '.join(unknown)}; it has {', '.join(MODELS)}")
    for model in chosen:
        allowed = _settable(model)
        for name, value in model_params.get(model, {}).items():
            if model in _KINDS and name not in allowed and _PLANNER_PARAMETERS.get(name) != value:
                takes = ", ".join(sorted(allowed)) or "no parameters"
                found.append(f"model_params.{model}.{name}: not available here; {model} takes {takes}")
    return found


def build(model: str, season: int, parameters: Mapping[str, Any]) -> Forecaster:
    """Make a forecaster of a model that `faults` has passed; a season of 1 means none."""
    kind = _KINDS[model]
    arguments = dict(kind.defaults)
    if kind.season == "seasonal":
        arguments["seasonal"] = season if season > 1 else None
    elif kind.season:
        arguments[kind.season] = season
    for name, value in parameters.items():
        if name not in _PLANNER_PARAMETERS:
            arguments[name] = tuple(value) if isinstance(value, list) else value
    forecaster: Forecaster = getattr(load_library(), kind.name)(**arguments)
    return forecaster


def load_library() -> ModuleType:
    """Import statsforecast's models."""
    from forecast_worker.library import models  # noqa: PLC0415 - see there

    library: ModuleType = models
    return library


def _settable(model: str) -> frozenset[str]:
    kind = _KINDS.get(model)
    if kind is None:
        return frozenset()
    return kind.settable | ({kind.season} if kind.season else set())

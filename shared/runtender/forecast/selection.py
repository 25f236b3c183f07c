"""Which models of a config a submit message really asks for, and which of them this plane cannot run."""

from __future__ import annotations

from runtender.forecast.blocks import DEFAULT_RUNTIME, FamilyOverride, RunConfig
from runtender.forecast.families import FAMILY_OF, models_of, pool_families
from runtender.forecast.terms import GKE_RUNTIMES, SERVED_RUNTIMES, VM_RUNTIME
from runtender.forecast.validation import FieldReader, shown
from runtender.model import SubmitRequest

ENSEMBLE = "ensemble"
_FOREIGN_PLATFORM = {"native": "BigQuery", "automl": "Vertex AI"}


def select_models(reader: FieldReader, config: RunConfig, request: SubmitRequest) -> tuple[str, ...]:
    """Return the config's models that the message asks for, in the config's order.

    Faults names it does not have.
    """
    families = pool_families(config.models)
    named = (*families, ENSEMBLE) if config.ensemble_enabled else families
    for family in request.families:
        reader.known(family, named, "families", "a family of this config")
    for model in request.models:
        reader.known(model, config.models, "models", "a model of this config")
    selected = tuple(
        model
        for model in config.models
        if (not request.families or FAMILY_OF[model] in request.families)
        and (not request.models or model in request.models)
    )
    if not selected and not (reader.blames("families") or reader.blames("models")):
        reader.fault("models", "no model of the config is left", "widen `families` or `models`")
    for family in request.overrides:
        reader.known(family, pool_families(selected), f"overrides.{family}", "a family of this run")
    return selected


def check_served(
    reader: FieldReader,
    config: RunConfig,
    request: SubmitRequest,
    selected: tuple[str, ...],
) -> None:
    """Fault what this plane has no runtime for, by name and reason; a subset without it is welcome."""
    for family in pool_families(selected):
        platform = _FOREIGN_PLATFORM.get(family)
        if platform:
            names = ", ".join(models_of(selected, family))
            remedy = "leave them out, or send `families` without it"
            reader.fault(
                "models", f"{names} ({family}) run on {platform}, which this plane does not serve", remedy
            )
        else:
            _check_runtime(reader, config, family)
    asked_for_part = bool(request.families or request.models)
    if config.ensemble_enabled and (ENSEMBLE in request.families or not asked_for_part):
        remedy = "disable it, or send `families` without it"
        reader.fault("ensemble.enabled", "this plane does not serve ensembles", remedy)


def runtime_of(config: RunConfig, family: str) -> str:
    """Return the runtime that a family is to run on."""
    return config.compute.families.get(family, FamilyOverride()).runtime or config.python_runtime


def _check_runtime(reader: FieldReader, config: RunConfig, family: str) -> None:
    own = config.compute.families.get(family, FamilyOverride()).runtime
    runtime = runtime_of(config, family)
    if runtime in (VM_RUNTIME, *GKE_RUNTIMES):
        return
    field = f"compute.families.{family}.runtime" if own else "python_runtime"
    choices = " or ".join(shown(name) for name in SERVED_RUNTIMES)
    by_default = " (the default where none is written)" if runtime == DEFAULT_RUNTIME and not own else ""
    reader.fault(field, f"{shown(runtime)}{by_default} is not a runtime of this plane", f"write {choices}")

"""Reading a run config: the table of its fields, and one pass that names everything that is wrong.

Unknown fields are faults, because a misspelt limit would silently be no limit. Only the blocks that are the
worker's business (see `blocks`) may hold what the plane does not know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from runtender.forecast.blocks import (
    DEFAULT_RUNTIME,
    Block,
    Capacity,
    Compute,
    EnsembleCompute,
    FamilyOverride,
    PanelData,
    ProfilePolicy,
    RunConfig,
)
from runtender.forecast.catalogue import Catalogue
from runtender.forecast.compute import check_compute
from runtender.forecast.families import FAMILY_OF, MODELS_BY_FAMILY, pool_families
from runtender.forecast.machines import SHIPPED
from runtender.forecast.validation import (
    MOST_WORKERS,
    FieldReader,
    Kind,
    block,
    choice,
    cluster_name,
    either,
    flag,
    list_of,
    namespace,
    number,
    opaque,
    optional,
    parameter,
    shown,
    text,
    whole,
)

__all__ = ["RunConfig", "parse_config"]

RUNTIMES = ("spark", "ray", "vertex", "gce", "gke", "vertex_automl")
CAPACITY_SERVICES = (
    "ray",
    "vertex",
    "vertex_automl",
    "gce",
    "gke",
    "dataproc_cluster",
    "dataproc_serverless",
)

MAX_RUN_NAME = 128
"""Job keys hold the run name; they are path segments and document ids."""

_OPAQUE = ("features", "backtest", "output", "hpo", "ensemble", "hierarchy")
_SWITCHED = ("ensemble", "hierarchy")

CONFIG_FIELDS: Mapping[str, Kind] = {
    "run_name": text(MAX_RUN_NAME),
    "data": block(),
    "models": list_of(text(), least=1),
    "python_runtime": choice(*RUNTIMES),
    "compute": block(),
    "model_params": block(),
    **dict.fromkeys(_OPAQUE, opaque()),
}
DATA_FIELDS: Mapping[str, Kind] = {
    "source_table": text(),
    "ts_id_col": text(),
    "date_col": text(),
    "target_col": text(),
    "freq": text(32),
    "horizon": whole(),
    "series_limit": optional(whole()),
}
PROFILE_FIELDS: Mapping[str, Kind] = {
    "mode": choice("off", "auto", "always"),
    "samples": whole(),
    "min_cells": whole(),
    "memory_margin": number(1),
    "time_margin": number(1),
    "measure": choice("off", "harvest", "controlled"),
    "source": text(),
}
POLICY_FIELDS: Mapping[str, Kind] = {
    "max_attempts": optional(whole(0)),
    "max_wall_seconds": optional(number(0)),
    "max_passes": optional(whole(0)),
    "backoff_seconds": optional(number(0)),
    "backoff_multiplier": optional(number(1)),
    "backoff_max_seconds": optional(number(0)),
}
CAPACITY_FIELDS: Mapping[str, Kind] = {
    "enabled": flag(),
    "preflight": flag(),
    "wait_for_quota": flag(),
    "retry": block(),
    **dict.fromkeys(CAPACITY_SERVICES, block()),
}
RETRY_FIELDS: Mapping[str, Kind] = {"max_executors": optional(whole())}
ENSEMBLE_FIELDS: Mapping[str, Kind] = {
    "mode": choice("barrier", "microbatch"),
    "microbatch_interval_s": number(0, above=True),
}
FAMILY_FIELDS: Mapping[str, Kind] = {
    "runtime": optional(choice(*RUNTIMES)),
    "spark_mode": optional(text()),
    "spark_cluster_name": optional(text()),
    "gke_mode": optional(choice("job", "ray")),
    "gke_cluster_name": optional(cluster_name()),
    "ray_mode": optional(choice("vertex", "gke")),
    "automl_mode": optional(text()),
    "hardware": optional(choice("cpu", "gpu")),
    "gpu_type": optional(choice(*SHIPPED.gpus)),
    "accelerator_count": optional(whole()),
    "machine_type": optional(text(63)),
    "workers": optional(whole(most=MOST_WORKERS)),
    "min_workers": optional(whole()),
    "max_workers": optional(whole()),
}
_AUTO = Kind('"auto"', lambda v: v == "auto", lambda _: None, {"const": "auto"})
COMPUTE_FIELDS: Mapping[str, Kind] = {
    "max_parallelism": whole(),
    "bucket_target_cells": whole(),
    "machine_type": text(63),
    "workers": whole(most=MOST_WORKERS),
    "min_workers": optional(whole()),
    "max_workers": optional(whole()),
    "use_gpu": flag(),
    "gpu_type": choice(*SHIPPED.gpus),
    "accelerator_count": whole(),
    "gpu_fraction": either(_AUTO, number(0, above=True, most=1)),
    "gpu_safety_margin": number(1, above=True),
    "gpu_calibration_samples": whole(),
    "budget_usd": number(0),
    "gke_mode": choice("job", "ray"),
    "gke_cluster_name": optional(cluster_name()),
    "gke_namespace": namespace(),
    "ray_mode": choice("vertex", "gke"),
    "ray_cluster_name": optional(text()),
    "ray_regions": optional(list_of(text(63), least=1)),
    "ray_head_machine_type": text(63),
    "ray_cpu_machine_type": text(63),
    "ray_gpu_machine_type": text(63),
    "ray_target_cells_per_slot": whole(),
    "ray_max_nodes": whole(),
    "ray_autoscale": flag(),
    "ray_cpu_min_nodes": whole(),
    "ray_cpu_max_nodes": optional(whole()),
    "ray_gpu_min_nodes": whole(),
    "ray_gpu_max_nodes": optional(whole()),
    "ray_read_mode": choice("driver_collect", "ray_data"),
    "read_max_streams": whole(0),
    "persist_models": flag(),
    "profile": block(),
    "capacity": block(),
    "families": block(),
    "ensemble": block(),
}
# Names of older configs, still accepted for `machine_type` and `workers`.
LEGACY_FIELDS: Mapping[str, Kind] = {
    "vertex_machine_type": text(63),
    "vertex_gpu_machine_type": text(63),
    "vertex_workers": whole(),
}


def parse_config(raw: Mapping[str, Any], catalogue: Catalogue = SHIPPED) -> RunConfig:
    """Read a run config; raises `Rejected` with every fault, each naming its field and what to write.

    GPUs and machine types are checked against `catalogue`.
    """
    reader = FieldReader()
    reader.refuse_depth(raw)
    fields = reader.fields(raw, "", CONFIG_FIELDS, required=("run_name", "data", "models"))
    needed = ("source_table",) if "data" in fields else ()
    data = reader.fields(fields.get("data", {}), "data", DATA_FIELDS, required=needed)
    models = _models(reader, fields.get("models", ()))
    params = _model_params(reader, fields.get("model_params", {}))
    for name in _SWITCHED:
        _check_switch(reader, name, fields.get(name, {}))
    compute = _compute(reader, fields.get("compute", {}), catalogue)
    runtime = fields.get("python_runtime", DEFAULT_RUNTIME)
    if compute is not None and not reader.blames("python_runtime"):
        check_compute(reader, compute, runtime, pool_families(models), catalogue)
    reader.finish()
    blocks = {"data": PanelData(**data), "compute": compute, "model_params": params}
    return RunConfig(**{**fields, **blocks})


def _models(reader: FieldReader, models: tuple[str, ...]) -> tuple[str, ...]:
    """Return the known ones, so that what they need of the compute block is checked in the same pass."""
    known = tuple(
        m for i, m in enumerate(models) if reader.known(m, FAMILY_OF, f"models[{i}]", "a known model")
    )
    for model in (name for name, times in Counter(models).items() if times > 1):
        reader.fault("models", f"{shown(model)} is listed more than once", "list each model once")
    return known


def _model_params(reader: FieldReader, raw: Block) -> Mapping[str, Block]:
    kind = parameter()
    for model, parameters in raw.items():
        field = f"model_params.{model}"
        reader.known(model, FAMILY_OF, field, "a known model")
        if not isinstance(parameters, Mapping):
            reader.fault(field, f"{shown(parameters)} is not an object", "write {parameter: value}")
            continue
        for name, value in parameters.items():
            if not kind.accepts(value):
                reader.fault(
                    f"{field}.{name}", f"{shown(value)} is not accepted", f"it must be {kind.expects}"
                )
    return raw


def _check_switch(reader: FieldReader, name: str, raw: Block) -> None:
    if not isinstance(raw.get("enabled", False), bool):
        reader.fault(
            f"{name}.enabled", f"{shown(raw['enabled'])} is not accepted", "it must be true or false"
        )


def _compute(reader: FieldReader, raw: Block, catalogue: Catalogue) -> Compute | None:
    """Return the compute block; None if anything in it is wrong: its rules would then speak of defaults."""
    gpus = choice(*catalogue.gpus)
    fields = reader.fields(raw, "compute", {**COMPUTE_FIELDS, **LEGACY_FIELDS, "gpu_type": gpus})
    profile = reader.fields(fields.get("profile", {}), "compute.profile", PROFILE_FIELDS)
    ensemble = reader.fields(fields.get("ensemble", {}), "compute.ensemble", ENSEMBLE_FIELDS)
    blocks = {
        "profile": ProfilePolicy(**profile),
        "ensemble": EnsembleCompute(**ensemble),
        "capacity": _capacity(reader, fields.get("capacity", {})),
        "families": _families(reader, fields.get("families", {}), gpus),
    }
    if reader.blames("compute"):
        return None
    return Compute(**{**_renamed(fields), **blocks})


def _renamed(fields: dict[str, Any]) -> dict[str, Any]:
    """Give old names their new ones; a field that is there under its new name stays as it is."""
    renamed = {name: value for name, value in fields.items() if name not in LEGACY_FIELDS}
    old_machine = fields.get("vertex_machine_type")
    if fields.get("use_gpu"):
        old_machine = fields.get("vertex_gpu_machine_type", old_machine)
    for name, value in (("machine_type", old_machine), ("workers", fields.get("vertex_workers"))):
        if value is not None:
            renamed.setdefault(name, value)
    return renamed


def _capacity(reader: FieldReader, raw: Block) -> Capacity:
    fields = reader.fields(raw, "compute.capacity", CAPACITY_FIELDS)
    retry = reader.fields(fields.pop("retry", {}), "compute.capacity.retry", RETRY_FIELDS)
    services = {
        name: reader.fields(fields.pop(name), f"compute.capacity.{name}", POLICY_FIELDS)
        for name in CAPACITY_SERVICES
        if name in fields
    }
    return Capacity(**fields, services=services, retry_max_executors=retry.get("max_executors"))


def _families(reader: FieldReader, raw: Block, gpus: Kind) -> Mapping[str, FamilyOverride]:
    kinds = {**FAMILY_FIELDS, "gpu_type": optional(gpus)}
    return {
        family: FamilyOverride(**reader.fields(override, f"compute.families.{family}", kinds))
        for family, override in raw.items()
        if reader.known(family, MODELS_BY_FAMILY, f"compute.families.{family}", "a family")
    }

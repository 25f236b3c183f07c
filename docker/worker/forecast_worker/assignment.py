"""What this worker is to do, from its arguments, its environment, the run's config and the panel."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forecast_worker.backtest import Backtest
from forecast_worker.cells import Origin
from forecast_worker.models import faults
from runtender.forecast.config import RunConfig, parse_config
from runtender.forecast.families import panel_models, split_by_runtime
from runtender.worker.forecastable import check_series
from runtender.worker.objects import ObjectMissing, Objects
from runtender.worker.panel import Columns, Panel, Series, missing_panel, read_panel, table_panel
from runtender.worker.periods import frequency, unknown_frequency
from runtender.worker.topology import (
    Topology,
    build_worker_series_range,
    is_model_sharded,
    partition_models_for_worker,
    resolve_topology,
)


class InputError(ValueError):
    """The worker was started with something it cannot work on; the message says what and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What the plane tells a worker directly."""

    origin: Origin
    cells_uri: str
    config_uri: str
    project: str | None
    models: tuple[str, ...]
    topology: Topology


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """This worker's share: every one of `models` on every one of `series`.

    `warning` says which series of the run's panel cannot be forecast; it is empty where all can.
    """

    models: tuple[str, ...]
    series: tuple[Series, ...]
    plan: Backtest
    warning: str = ""


def read_told(arguments: Sequence[str], environ: Mapping[str, str]) -> Told:
    """Read arguments and environment; InputError names every variable that is missing."""
    options, ignored = _parser().parse_known_args(arguments)
    if ignored:
        # A newer plane may say more than this worker understands.
        print(f"ignored arguments: {' '.join(ignored)}")
    required = ("SF_RUN_ID", "SF_JOB_KEY", "SF_NONCE", "SF_CELLS_URI")
    missing = [name for name in required if not environ.get(name)]
    if missing:
        raise InputError(f"{', '.join(missing)}: not set; the plane sets them on its workers")
    run_id, job_key, nonce, cells_uri = (environ[name] for name in required)
    return Told(
        origin=Origin(run_id=run_id, job_key=job_key, nonce=nonce),
        cells_uri=cells_uri.rstrip("/"),
        config_uri=options.config_uri,
        project=options.sf_project_id or environ.get("SF_PROJECT_ID"),
        models=tuple(name.strip() for name in options.models.split(",") if name.strip()),
        topology=resolve_topology(options.worker_rank, options.worker_count, environ),
    )


def read_assignment(told: Told, objects: Objects) -> Assignment:
    """Load config and panel and cut out this worker's share.

    Raises InputError, PanelError or the config's Rejected, all before any work is done.
    """
    config = _read_config(told.config_uri, objects)
    # BigQuery's models are not ours. Asked for by name they are a fault that the caller should see.
    models = told.models or split_by_runtime(config.models)[0]
    plan = _plan(config, models)
    panel = frozenset(panel_models(models, config.model_params))
    sharded = is_model_sharded(models, panel=panel, hierarchy=config.hierarchy_enabled)
    chosen = _read_panel(config, objects).first(config.data.series_limit)
    return Assignment(
        models=partition_models_for_worker(
            models, told.topology, panel=panel, hierarchy=config.hierarchy_enabled
        ),
        series=_share(chosen, config, Topology() if sharded else told.topology),
        plan=plan,
        warning=check_series(chosen, plan.horizon, plan.frequency),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="forecast_worker", description=__doc__, allow_abbrev=False)
    parser.add_argument("--config-uri", required=True, help="gs:// URI of the run's config (JSON)")
    parser.add_argument("--sf-project-id", help="project of the storage client")
    parser.add_argument("--models", default="", help="comma-separated subset of the config's models")
    parser.add_argument("--worker-rank", type=int, help="this worker's rank; default: the environment's")
    parser.add_argument("--worker-count", type=int, help="number of workers; default: the environment's")
    for name in ("sf-connection", "sf-warehouse-uri", "sf-dataset-id", "sf-region"):
        parser.add_argument(f"--{name}", help="part of the contract; not needed by this worker")
    parser.add_argument(
        "--manage-header", help="part of the contract; this worker never owns the run's header"
    )
    parser.add_argument("--provisioned-hardware", help="part of the contract; these models run on CPUs")
    return parser


def _read_config(uri: str, objects: Objects) -> RunConfig:
    try:
        content = json.loads(objects.read(uri))
    except ObjectMissing as error:
        raise InputError(f"--config-uri: {error}") from error
    except ValueError as error:
        raise InputError(f"--config-uri: {uri} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"--config-uri: {uri} is not a JSON object")
    # What it runs on was decided by the plane, which may know machines that this image has never heard of.
    return parse_config({name: value for name, value in content.items() if name != "compute"})


def _plan(config: RunConfig, models: Sequence[str]) -> Backtest:
    found = faults(models, config.model_params)
    freq = frequency(config.data.freq)
    if freq is None:
        found.append(str(unknown_frequency(config.data.freq)))
    if found or freq is None:
        raise InputError("\n".join(found))
    return Backtest(frequency=freq, horizon=config.data.horizon, model_params=config.model_params)


def _read_panel(config: RunConfig, objects: Objects) -> Panel:
    data = config.data
    uri = data.source_table
    if not uri.startswith("gs://"):
        raise table_panel(uri)
    try:
        content = objects.read(uri)
    except ObjectMissing as error:
        raise missing_panel(uri) from error
    return read_panel(content, uri, Columns(ts_id=data.ts_id_col, date=data.date_col, target=data.target_col))


def _share(chosen: Panel, config: RunConfig, topology: Topology) -> tuple[Series, ...]:
    data = config.data
    names = [series.ts_id for series in chosen.series]
    mine = build_worker_series_range(names, data.series_limit, data.ts_id_col, topology).ids
    return tuple(series for series in chosen.series if series.ts_id in mine)

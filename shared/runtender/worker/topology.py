"""Which share of a run this worker does: its rank, its models and its series.

Every worker of a job starts with the same configuration and works out its own share from its rank alone, so
nothing has to be handed out. The planner asks the same functions how many workers are worth having. Pure: the
environment is an argument. Standard library only, because this also runs on the worker.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

DEEP_LEARNING_MODELS = frozenset({"neuralprophet", "tide", "tft", "tsmixer", "patchtst"})

# A panel model trains once on all series, so its series cannot be divided between workers.
_PANEL_MODELS_BY_TRAINING_MODE = {
    "global": DEEP_LEARNING_MODELS,
    "hybrid": frozenset({"neuralprophet"}),
}

_TOTAL_VARIABLES = ("JOB_COMPLETION_TOTAL", "JOB_COMPLETION_COUNT", "SF_WORKER_COUNT")
_POOL_ORDER = ("chief", "master", "worker", "ps", "evaluator")


class TopologyError(ValueError):
    """What the worker was told about its rank makes no sense."""


class Source(StrEnum):
    """Where a topology was read from, most explicit first."""

    CLI = "cli"
    ENV = "env"
    K8S_INDEXED_JOB = "k8s_indexed_job"
    VERTEX_CLUSTER_SPEC = "vertex_cluster_spec"
    SINGLE = "single"


@dataclass(frozen=True, kw_only=True, slots=True)
class Topology:
    """A worker's place among the workers of its job: `0 <= rank < world_size`, else TopologyError."""

    rank: int = 0
    world_size: int = 1
    source: Source = Source.SINGLE

    def __post_init__(self) -> None:
        if self.world_size < 1 or not 0 <= self.rank < self.world_size:
            raise TopologyError(
                f"worker rank {self.rank} of {self.world_size} ({self.source}) is out of bounds; "
                "a rank is at least 0 and below the number of workers"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class SeriesRange:
    """A worker's series: the SQL restriction that reads them (None: all rows), their ids, the run's total."""

    restriction: str | None
    ids: frozenset[str]
    total: int


def resolve_topology(rank: int | None, count: int | None, environ: Mapping[str, str]) -> Topology:
    """Find this worker's place: arguments, SF_WORKER_*, a Job's index, CLUSTER_SPEC, else a single worker.

    Raises TopologyError when the first source that is present is not an integer or out of bounds.
    """
    if rank is not None or count is not None:
        return Topology(rank=rank or 0, world_size=1 if count is None else count, source=Source.CLI)
    return (
        _from_worker_variables(environ)
        or _from_indexed_job(environ)
        or _from_cluster_spec(environ)
        or Topology()
    )


def panel_models(training_modes: Mapping[str, str]) -> frozenset[str]:
    """Return the models that train once on all series, given each model's `training_mode`."""
    return frozenset(
        model
        for model, mode in training_modes.items()
        if model in _PANEL_MODELS_BY_TRAINING_MODE.get(mode, ())
    )


def is_model_sharded(
    models: Sequence[str], *, panel: Set[str] = frozenset(), hierarchy: bool = False
) -> bool:
    """Tell whether each worker has all series and only some of the models."""
    if not models:
        return False
    if hierarchy or all(model in panel for model in models):
        return True
    return len(models) > 1 and _all_train_long(models, panel)


def effective_worker_count(
    models: Sequence[str],
    requested: int,
    *,
    n_series: int | None = None,
    panel: Set[str] = frozenset(),
    hierarchy: bool = False,
) -> int:
    """Return how many workers can have something to do; `n_series` is None or 0 while unknown."""
    if not models:
        return 1
    asked = max(1, requested)
    if is_model_sharded(models, panel=panel, hierarchy=hierarchy):
        if asked == 1 and _all_train_long(models, panel):
            return len(models)
        return min(asked, len(models))
    if asked == 1 or not n_series:
        return asked
    return min(asked, max(len(models), n_series))


def partition_models_for_worker(
    models: Sequence[str], topology: Topology, *, panel: Set[str] = frozenset(), hierarchy: bool = False
) -> tuple[str, ...]:
    """Return the models this worker runs, in the order given."""
    if topology.world_size == 1:
        return tuple(models)
    if is_model_sharded(models, panel=panel, hierarchy=hierarchy):
        return tuple(models[topology.rank :: topology.world_size])
    mine = {model for model in models if model not in panel}
    mine.update([model for model in models if model in panel][topology.rank :: topology.world_size])
    return tuple(model for model in models if model in mine)


def slice_bounds(n: int, topology: Topology) -> tuple[int, int]:
    """Return the half-open range of `n` sorted things that is this worker's; it may be empty."""
    return n * topology.rank // topology.world_size, n * (topology.rank + 1) // topology.world_size


def build_worker_series_range(
    ids: Iterable[object], limit: int | None, column: str, topology: Topology, hpo_sample_n: int = 0
) -> SeriesRange:
    """Return this worker's series of the run's first `limit` (sorted as text) and how to read them.

    `hpo_sample_n` > 0 adds the run's first series, which every worker reads for tuning, to the restriction.
    """
    distinct = sorted({str(series) for series in ids})
    chosen = distinct[:limit]
    start, end = slice_bounds(len(chosen), topology)
    mine = chosen[start:end]
    if not mine:
        return SeriesRange(restriction=None, ids=frozenset(), total=len(chosen))
    if topology.world_size == 1:
        restriction = f"{column} <= {_quoted(mine[-1])}" if len(chosen) < len(distinct) else None
    else:
        restriction = f"{column} >= {_quoted(mine[0])} AND {column} <= {_quoted(mine[-1])}"
        if hpo_sample_n > 0 and topology.rank > 0:
            last_sample = chosen[min(hpo_sample_n, len(chosen)) - 1]
            restriction = f"({restriction}) OR {column} <= {_quoted(last_sample)}"
    return SeriesRange(restriction=restriction, ids=frozenset(mine), total=len(chosen))


def _all_train_long(models: Iterable[str], panel: Set[str]) -> bool:
    return all(model in panel or model in DEEP_LEARNING_MODELS for model in models)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _integer(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise TopologyError(f"{name} is {text!r}, not an integer") from error


def _from_worker_variables(environ: Mapping[str, str]) -> Topology | None:
    rank, count = _integer(environ, "SF_WORKER_RANK"), _integer(environ, "SF_WORKER_COUNT")
    if rank is None and (count is None or _integer(environ, "JOB_COMPLETION_INDEX") is not None):
        # Beside a Job's index a lone count is the Job's total, not a topology of its own.
        return None
    rank = rank or 0
    return Topology(rank=rank, world_size=max(1, rank + 1) if count is None else count, source=Source.ENV)


def _from_indexed_job(environ: Mapping[str, str]) -> Topology | None:
    index = _integer(environ, "JOB_COMPLETION_INDEX")
    if index is None:
        return None
    totals = (_integer(environ, name) for name in _TOTAL_VARIABLES)
    total = next((total for total in totals if total is not None), index + 1)
    return Topology(rank=index, world_size=total, source=Source.K8S_INDEXED_JOB)


def _from_cluster_spec(environ: Mapping[str, str]) -> Topology | None:
    text = environ.get("CLUSTER_SPEC", "").strip()
    if not text:
        return None
    try:
        spec = json.loads(text)
        pools = {str(name): len(hosts) for name, hosts in spec["cluster"].items()}
        pool, index = str(spec["task"]["type"]), int(spec["task"]["index"])
        before = sorted(pools, key=_pool_rank)
        earlier = before[: before.index(pool)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        warnings.warn(f"CLUSTER_SPEC is ignored: {error!r}", stacklevel=3)
        return None
    rank = sum(pools[name] for name in earlier) + index
    return Topology(rank=rank, world_size=sum(pools.values()), source=Source.VERTEX_CLUSTER_SPEC)


def _pool_rank(name: str) -> tuple[int, int, str]:
    numbered = re.fullmatch(r"workerpool(\d+)", name)
    if numbered:
        return 0, int(numbered[1]), name
    position = _POOL_ORDER.index(name) if name in _POOL_ORDER else len(_POOL_ORDER)
    return 1, position, name

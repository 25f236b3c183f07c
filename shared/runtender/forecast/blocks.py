"""The records of a run config: every block with its fields and defaults.

The blocks `features`, `backtest`, `output`, `hpo`, `ensemble` and `hierarchy` are the worker's business: they
stand here as they came, and the plane reads of them only whether the ensemble and the hierarchy are enabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Block = Mapping[str, Any]

DEFAULT_RUNTIME = "spark"


@dataclass(frozen=True, kw_only=True, slots=True)
class PanelData:
    """Which series to forecast: the panel, its columns, its frequency and how far ahead."""

    source_table: str
    ts_id_col: str = "ts_id"
    date_col: str = "ds"
    target_col: str = "y"
    freq: str = "D"
    horizon: int = 28
    series_limit: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfilePolicy:
    """Whether and how the needs of a cell are measured; margins multiply what was measured."""

    mode: str = "auto"
    samples: int = 8
    min_cells: int = 1000
    memory_margin: float = 1.3
    time_margin: float = 1.2
    measure: str = "harvest"
    source: str = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """How patiently capacity is looked for.

    `services` has what the config changes of a service's policy, by field; null keeps the service's own. With
    `wait_for_quota` a job without quota anywhere waits for it as long as it may wait for capacity.
    """

    enabled: bool = True
    preflight: bool = True
    wait_for_quota: bool = False
    services: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    retry_max_executors: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FamilyOverride:
    """What a config says for one family only; None falls back to the flat block."""

    runtime: str | None = None
    spark_mode: str | None = None
    spark_cluster_name: str | None = None
    gke_mode: str | None = None
    gke_cluster_name: str | None = None
    ray_mode: str | None = None
    automl_mode: str | None = None
    hardware: str | None = None
    gpu_type: str | None = None
    accelerator_count: int | None = None
    machine_type: str | None = None
    workers: int | None = None
    min_workers: int | None = None
    max_workers: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EnsembleCompute:
    """How the ensemble's job waits for its members."""

    mode: str = "barrier"
    microbatch_interval_s: float = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Compute:
    """What every family gets that has no override of its own. A `gpu_fraction` of None is automatic."""

    max_parallelism: int = 1000
    bucket_target_cells: int = 8
    machine_type: str = "auto"
    workers: int = 1
    min_workers: int | None = None
    max_workers: int | None = None
    use_gpu: bool = False
    gpu_type: str = "T4"
    accelerator_count: int = 1
    gpu_fraction: float | None = None
    gpu_safety_margin: float = 1.3
    gpu_calibration_samples: int = 3
    budget_usd: float = 50.0
    gke_mode: str = "job"
    gke_cluster_name: str | None = None
    gke_namespace: str = "default"
    ray_mode: str = "vertex"
    ray_cluster_name: str | None = None
    ray_regions: tuple[str, ...] | None = None
    ray_head_machine_type: str = "n1-standard-16"
    ray_cpu_machine_type: str = "n1-standard-8"
    ray_gpu_machine_type: str = "n1-standard-8"
    ray_target_cells_per_slot: int = 8
    ray_max_nodes: int = 16
    ray_autoscale: bool = True
    ray_cpu_min_nodes: int = 1
    ray_cpu_max_nodes: int | None = None
    ray_gpu_min_nodes: int = 1
    ray_gpu_max_nodes: int | None = None
    ray_read_mode: str = "driver_collect"
    read_max_streams: int = 0
    persist_models: bool = False
    profile: ProfilePolicy = ProfilePolicy()
    capacity: Capacity = Capacity()
    families: Mapping[str, FamilyOverride] = field(default_factory=dict)
    ensemble: EnsembleCompute = EnsembleCompute()


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig:
    """A validated run config. The opaque blocks stand as they came."""

    run_name: str
    data: PanelData
    models: tuple[str, ...]
    python_runtime: str = DEFAULT_RUNTIME
    compute: Compute = Compute()
    model_params: Mapping[str, Block] = field(default_factory=dict)
    features: Block = field(default_factory=dict)
    backtest: Block = field(default_factory=dict)
    output: Block = field(default_factory=dict)
    hpo: Block = field(default_factory=dict)
    ensemble: Block = field(default_factory=dict)
    hierarchy: Block = field(default_factory=dict)

    @property
    def ensemble_enabled(self) -> bool:
        """Whether the run also wants an ensemble of its members."""
        return bool(self.ensemble.get("enabled", False))

    @property
    def hierarchy_enabled(self) -> bool:
        """Whether the series form a hierarchy, so that each worker needs all of them."""
        return bool(self.hierarchy.get("enabled", False))

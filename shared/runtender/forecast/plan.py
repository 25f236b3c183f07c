"""The plan of one family's job: what all families of a message share, and what a VM adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from runtender import ids
from runtender.forecast.blocks import RunConfig
from runtender.forecast.compute import FamilyCompute, resolve_family_compute
from runtender.forecast.cost import Estimate, estimate
from runtender.forecast.images import check_image
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.profiles import plan_note
from runtender.forecast.sizing import PoolPlan, SlotWish, plan_pool, slot_of, unit_of
from runtender.forecast.terms import (
    Hardware,
    HardwareWish,
    choose_hardware,
    spans_for,
    vm_plan,
)
from runtender.forecast.validation import (
    MOST_WORKERS,
    FieldReader,
    Kind,
    choice,
    cluster_location,
    cluster_name,
    flag,
    shown,
    text,
    whole,
)
from runtender.model import JobPlan, Placement, SubmitRequest, WalkPolicy
from runtender.settings import Settings

_OVERRIDE: Mapping[str, Kind] = {
    "hardware": choice("cpu", "gpu"),
    "gpu_type": text(63),
    "machine_type": text(63),
    "accelerator_count": whole(),
    "workers": whole(most=MOST_WORKERS),
    "spot": flag(),
    "gke_mode": text(),
    "cluster_name": cluster_name(),
    "cluster_location": cluster_location(),
    "keep_cluster": flag(),
}
_GPU_ONLY = ("gpu_type", "accelerator_count")
_GKE_ONLY = ("gke_mode", "cluster_name", "cluster_location", "keep_cluster")


@dataclass(frozen=True, kw_only=True, slots=True)
class Staged:
    """What the caller has staged for the workers."""

    image: str
    package_uri: str
    entrypoint: str
    config_uri: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Shared:
    """What all families of one message share, whatever they run on."""

    reader: FieldReader
    config: RunConfig
    request: SubmitRequest
    settings: Settings
    staged: Staged
    placements: tuple[Placement, ...]
    walk: WalkPolicy
    run_id: str
    knowledge: Knowledge

    def compute_of(self, family: str) -> FamilyCompute:
        """Return what the config says of a family's compute."""
        compute = self.config.compute
        return resolve_family_compute(compute, self.config.python_runtime, family, self.knowledge.catalogue)

    def override_of(self, compute: FamilyCompute) -> dict[str, Any]:
        """Return what the message overrides of it; faults what is wrong in that."""
        path = f"overrides.{compute.family}"
        override = self.reader.fields(self.request.overrides.get(compute.family, {}), path, _OVERRIDE)
        for name in _GPU_ONLY:
            if name in override and override.get("hardware", compute.hardware) == "cpu":
                remedy = 'leave it out, or add "hardware": "gpu"'
                self.reader.fault(f"{path}.{name}", "the job's hardware is cpu", remedy)
        return override

    def hardware_of(self, compute: FamilyCompute, override: Mapping[str, Any]) -> Hardware | None:
        """Lay the message's override over the family's compute; None, with a fault, where no machine fits."""
        own = self.config.compute.families.get(compute.family)
        count = override.get("accelerator_count") or compute.accelerator_count
        wish = HardwareWish(
            hardware=override.get("hardware", compute.hardware),
            gpu_type=override.get("gpu_type", compute.gpu_type),
            count=count or self.config.compute.accelerator_count,
            default_machine=self.config.compute.machine_type,
            machine_type=override.get("machine_type", own.machine_type if own else None),
            spot=override.get("spot", False),
        )
        return choose_hardware(self.reader, f"overrides.{compute.family}", wish, self.knowledge.catalogue)

    def job(self, key: ids.JobKey, models: tuple[str, ...], hardware: Hardware, sizing: PoolPlan) -> JobPlan:
        """Return the plan of a family's job on a VM."""
        on_gpu = hardware.gpu_type is not None
        plan = vm_plan(
            settings=self.settings,
            request=self.request,
            hardware=hardware,
            spans=spans_for(self.reader, self.settings, self.request.limits, self.walk, on_gpu=on_gpu),
            image=self.staged.image,
            placements=self.placements,
            key=key,
            catalogue=self.knowledge.catalogue,
        )
        limit = self.config.data.series_limit
        return replace(
            plan,
            models=models,
            slot_cores=sizing.slot.cores,
            slots=sizing.slots_per_unit,
            package_uri=self.staged.package_uri,
            config_uri=self.staged.config_uri,
            entrypoint=self.staged.entrypoint,
            driver_args=driver_args(self.staged.config_uri, self.settings, models, hardware=hardware.kind),
            source_table=self.config.data.source_table,
            expected_cells=limit * len(models) if limit else None,
            resource_plan={**sizing.to_json(), **self._measures(key.family, sizing)},
        )

    def _measures(self, family: str, sizing: PoolPlan) -> dict[str, Any]:
        """Return what was measured and what follows from it: how long the pool needs for its cells."""
        used = self.knowledge.profiles.get(family)
        seconds = used.seconds_per_cell if used else None
        width = sizing.slots_per_unit * max(1, sizing.derived_units)
        return {
            "profile": plan_note(self.config, family, self.run_id, used),
            "seconds_per_cell": seconds,
            "wall_estimate_s": None if seconds is None else ceil(sizing.n_cells * seconds / width),
        }

    def sizing_of(
        self, family: str, models: tuple[str, ...], hardware: Hardware, *, runtime: str, workers: int = 1
    ) -> PoolPlan:
        """Size the machines of a job that has a fixed number of them."""
        unit = unit_of(hardware.machine_type, hardware.accelerators, self.knowledge.catalogue)
        wish = SlotWish(unit=unit, gpu_type=hardware.gpu_type, gpu_fraction=self.config.compute.gpu_fraction)
        return plan_pool(
            runtime=runtime,
            slots=[slot_of(family, wish, self.knowledge)],
            unit=unit,
            n_cells=self.series * len(models),
            workers=workers,
            target_cells_per_slot=self.config.compute.ray_target_cells_per_slot,
        )

    @property
    def series(self) -> int:
        """The number of series that a plan counts with: the series limit, else the parallelism."""
        return self.config.data.series_limit or self.config.compute.max_parallelism


def costs(plans: Mapping[str, JobPlan], settings: Settings, knowledge: Knowledge) -> dict[str, Estimate]:
    """Return what each family's job costs."""
    return {
        family: estimate(plan, knowledge.prices, knowledge.catalogue, time_scale=settings.time_scale)
        for family, plan in plans.items()
    }


def on_vm(shared: Shared, key: ids.JobKey, models: tuple[str, ...]) -> JobPlan | None:
    """Return one family's job on a VM; None, with a fault, where no machine fits."""
    compute = shared.compute_of(key.family)
    override = shared.override_of(compute)
    _check_single(shared.reader, f"overrides.{key.family}", override)
    hardware = shared.hardware_of(compute, override)
    if hardware is None:
        return None
    return shared.job(key, models, hardware, shared.sizing_of(key.family, models, hardware, runtime="gce"))


def _check_single(reader: FieldReader, path: str, override: Mapping[str, Any]) -> None:
    for name in _GKE_ONLY:
        if name in override:
            reader.fault(f"{path}.{name}", "only for gke, the job runs on gce", "leave it out")
    workers = override.get("workers", 1)
    if workers > 1:
        problem = f"{workers} workers: gce is single-VM execution only"
        reader.fault(f"{path}.workers", problem, "leave it out")


def driver_args(
    config_uri: str, settings: Settings, models: tuple[str, ...], *, hardware: str
) -> tuple[str, ...]:
    """Return the arguments of the worker's entry point.

    The job's own models are named always, so that no worker takes another family's. The header is never the
    worker's: the plane keeps it.
    """
    named = {
        "--config-uri": config_uri,
        "--sf-project-id": settings.project,
        "--sf-connection": settings.connection,
        "--sf-warehouse-uri": settings.warehouse_uri,
        "--sf-dataset-id": settings.dataset_id,
        "--sf-region": settings.region,
        "--models": ",".join(models),
        "--manage-header": "false",
        "--provisioned-hardware": hardware if hardware == "gpu" else "",
    }
    return tuple(word for flag_name, value in named.items() if value for word in (flag_name, value))


def staged(reader: FieldReader, request: SubmitRequest, settings: Settings, run_id: str) -> Staged:
    """Return what the workers are started from; faults what neither the message nor a setting names."""
    image = request.image or settings.container_image
    if not image:
        reader.fault("image", "is missing", "send `image`, or set SF_CONTAINER_IMAGE")
    else:
        check_image(reader, settings, image)
    package_uri = request.package_uri or settings.package_uri
    if not package_uri.startswith("gs://"):
        problem = f"{shown(package_uri)} is not a gs:// URI" if package_uri else "is missing"
        remedy = "run `runtender stage DIR` and send its URI as `package_uri`, or set SF_PACKAGE_URI"
        reader.fault("package_uri", problem, remedy)
    return Staged(
        image=image,
        package_uri=package_uri,
        entrypoint=request.entrypoint or settings.entrypoint,
        config_uri=ids.config_uri(settings.code_bucket, run_id),
    )

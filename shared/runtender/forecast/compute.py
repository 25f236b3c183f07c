"""What each family of a run gets to run on, and which settings contradict each other.

A family's override wins over the flat compute block. `check_compute` names every contradiction of a config
when it is read, so that `resolve_family_compute` does not fail later for a family that the config uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runtender.forecast import machines
from runtender.forecast.blocks import Compute, FamilyOverride
from runtender.forecast.catalogue import Catalogue
from runtender.forecast.families import GPU_FAMILIES
from runtender.forecast.validation import FieldReader

_NO_OVERRIDE = FamilyOverride()
_GPU_FIELDS = ("gpu_type", "accelerator_count")


@dataclass(frozen=True, kw_only=True, slots=True)
class FamilyCompute:
    """The compute of one family, with nothing left to inherit.

    None means not said, or without meaning on this runtime.
    """

    family: str
    runtime: str
    spark_mode: str | None = None
    spark_cluster_name: str | None = None
    hardware: str = "cpu"
    gpu_type: str | None = None
    machine_type: str | None = None
    workers: int | None = None
    min_workers: int | None = None
    max_workers: int | None = None
    accelerator_count: int = 0
    gke_mode: str | None = None
    gke_cluster_name: str | None = None
    ray_mode: str | None = None
    automl_mode: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kubernetes:
    gke_mode: str | None = None
    gke_cluster_name: str | None = None
    ray_mode: str | None = None


def resolve_family_compute(
    compute: Compute, python_runtime: str, family: str, catalogue: Catalogue = machines.SHIPPED
) -> FamilyCompute:
    """Return what a family runs on.

    Raises ValueError for `native` and for a machine that cannot carry its GPUs.
    """
    if family == "native":
        raise ValueError("native models run in BigQuery: there is no compute to resolve")
    override = compute.families.get(family, _NO_OVERRIDE)
    runtime = override.runtime or python_runtime
    hardware = _hardware(compute, override, family)
    on_gpu = hardware == "gpu"
    gpu_type = (override.gpu_type or compute.gpu_type) if on_gpu else None
    count = (override.accelerator_count or compute.accelerator_count) if on_gpu else 0
    kubernetes = _kubernetes(compute, override, runtime)
    fixed_pool = _is_fixed_pool(runtime, kubernetes.gke_mode)
    return FamilyCompute(
        family=family,
        runtime=runtime,
        spark_mode=override.spark_mode,
        spark_cluster_name=override.spark_cluster_name,
        hardware=hardware,
        gpu_type=gpu_type,
        machine_type=_machine_type(compute, override, gpu_type, count, catalogue)
        if fixed_pool
        else _free_choice(compute, override),
        workers=_workers(compute, override, runtime, fixed_pool=fixed_pool),
        min_workers=override.min_workers,
        max_workers=override.max_workers,
        accelerator_count=count,
        gke_mode=kubernetes.gke_mode,
        gke_cluster_name=kubernetes.gke_cluster_name,
        ray_mode=kubernetes.ray_mode,
        automl_mode=override.automl_mode,
    )


def check_compute(
    reader: FieldReader,
    compute: Compute,
    python_runtime: str,
    families: Iterable[str],
    catalogue: Catalogue = machines.SHIPPED,
) -> None:
    """Fault every contradiction in the compute block, for the families in use and those with an override."""
    _check_order(reader, "compute", compute.min_workers, compute.max_workers)
    try:
        machines.check_accelerator_count(compute.gpu_type, compute.accelerator_count, catalogue)
    except ValueError as error:
        reader.fault("compute.accelerator_count", str(error))
    for family in dict.fromkeys([*families, *compute.families]):
        if family == "native":
            continue
        override = compute.families.get(family, _NO_OVERRIDE)
        runtime = override.runtime or python_runtime
        _check_order(reader, f"compute.families.{family}", override.min_workers, override.max_workers)
        _check_gpu(reader, compute, override, family)
        _check_runtime_fields(reader, compute, override, family, runtime)
        _check_workers(reader, compute, override, family, runtime)
        if not reader.blames("compute"):
            _check_machine(reader, compute, override, family, python_runtime, catalogue)


def _hardware(compute: Compute, override: FamilyOverride, family: str) -> str:
    if family not in GPU_FAMILIES:
        return "cpu"
    return override.hardware or ("gpu" if compute.use_gpu else "cpu")


def _kubernetes(compute: Compute, override: FamilyOverride, runtime: str) -> _Kubernetes:
    cluster = override.gke_cluster_name or compute.gke_cluster_name
    if runtime == "gke":
        mode = override.gke_mode or compute.gke_mode
        return _Kubernetes(gke_mode=mode, gke_cluster_name=cluster, ray_mode="gke" if mode == "ray" else None)
    if runtime == "ray":
        mode = override.ray_mode or compute.ray_mode
        if mode == "gke":
            cluster = cluster or compute.ray_cluster_name
            return _Kubernetes(gke_mode="ray", gke_cluster_name=cluster, ray_mode=mode)
        return _Kubernetes(ray_mode=mode)
    return _Kubernetes()


def _is_fixed_pool(runtime: str, gke_mode: str | None) -> bool:
    """Whether the runtime takes a machine type and a number of workers, rather than a range it scales in."""
    return runtime in {"vertex", "gce"} or (runtime == "gke" and gke_mode == "job")


def _machine_type(
    compute: Compute, override: FamilyOverride, gpu_type: str | None, count: int, catalogue: Catalogue
) -> str:
    return machines.resolve_machine_type(
        hardware="gpu" if gpu_type else "cpu",
        gpu_type=gpu_type,
        count=count,
        default=compute.machine_type,
        override=override.machine_type,
        catalogue=catalogue,
    )


def _free_choice(compute: Compute, override: FamilyOverride) -> str | None:
    flat = None if compute.machine_type == machines.AUTO else compute.machine_type
    return override.machine_type or flat


def _workers(compute: Compute, override: FamilyOverride, runtime: str, *, fixed_pool: bool) -> int | None:
    if runtime == "gce":
        return 1
    return (override.workers or compute.workers) if fixed_pool else override.workers


def _check_order(reader: FieldReader, path: str, least: int | None, most: int | None) -> None:
    if least is not None and most is not None and least > most:
        reader.fault(f"{path}.min_workers", f"{least} is above max_workers {most}", "swap them or drop one")


def _check_gpu(reader: FieldReader, compute: Compute, override: FamilyOverride, family: str) -> None:
    given = [name for name in _GPU_FIELDS if getattr(override, name) is not None]
    if family not in GPU_FAMILIES:
        remedy = f"leave it out; GPUs are for {' and '.join(sorted(GPU_FAMILIES))}"
        for name in given + (["hardware"] if override.hardware == "gpu" else []):
            reader.fault(f"compute.families.{family}.{name}", f"{family} has no GPU settings", remedy)
        return
    if _hardware(compute, override, family) == "gpu":
        return
    # A type alone is harmless: a submit override may use it. A count, or a type beside an explicit cpu, is not.
    for name in given:
        if name == "accelerator_count" or override.hardware == "cpu":
            field = f"compute.families.{family}.{name}"
            reader.fault(field, "the family's hardware is cpu", 'leave it out, or write "hardware": "gpu"')


def _check_runtime_fields(
    reader: FieldReader, compute: Compute, override: FamilyOverride, family: str, runtime: str
) -> None:
    ray_on_gke = runtime == "ray" and (override.ray_mode or compute.ray_mode) == "gke"
    allowed = {
        "gke_mode": (runtime == "gke", "gke"),
        "ray_mode": (runtime == "ray", "ray"),
        "gke_cluster_name": (runtime == "gke" or ray_on_gke, "gke and Ray on GKE"),
        "spark_mode": (runtime == "spark", "spark"),
        "spark_cluster_name": (runtime == "spark", "spark"),
    }
    for name, (fits, where) in allowed.items():
        if getattr(override, name) is not None and not fits:
            field = f"compute.families.{family}.{name}"
            reader.fault(
                field, f"only for {where}, the family runs on {runtime}", "leave it out or change the runtime"
            )


def _check_workers(
    reader: FieldReader, compute: Compute, override: FamilyOverride, family: str, runtime: str
) -> None:
    path = f"compute.families.{family}"
    workers = override.workers or compute.workers
    if runtime == "gce" and workers > 1:
        field = f"{path}.workers" if override.workers else "compute.workers"
        remedy = f"write 1 (for this family: {path}.workers), or use the runtime gke"
        reader.fault(field, f"{workers} workers: gce is single-VM execution only", remedy)
    if not _is_fixed_pool(runtime, _kubernetes(compute, override, runtime).gke_mode):
        return
    # A family with a runtime of its own does not inherit a range that was meant for the others'.
    sources = {path: override, "compute": compute} if override.runtime is None else {path: override}
    for prefix, source in sources.items():
        for name in ("min_workers", "max_workers"):
            if getattr(source, name) is not None:
                reader.fault(f"{prefix}.{name}", f"{runtime} does not scale in a range", "use `workers`")


def _check_machine(
    reader: FieldReader,
    compute: Compute,
    override: FamilyOverride,
    family: str,
    python_runtime: str,
    catalogue: Catalogue,
) -> None:
    try:
        resolve_family_compute(compute, python_runtime, family, catalogue)
    except ValueError as error:
        named = next((n for n in ("machine_type", *_GPU_FIELDS) if getattr(override, n) is not None), None)
        field = f"compute.families.{family}.{named}" if named else "compute.machine_type"
        reader.fault(field, str(error))

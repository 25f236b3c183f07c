"""What every job's plan has, whatever it runs: hardware, time spans, identity, places.

The forecast planner and the task planner both start from `vm_plan` and add what is theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from math import ceil

from runtender import ids
from runtender.forecast import machines
from runtender.forecast.alternatives import machine_of, with_alternatives
from runtender.forecast.catalogue import Catalogue
from runtender.forecast.sizing import unit_of
from runtender.forecast.validation import FieldReader
from runtender.ids import JobKey
from runtender.model import JobPlan, Limits, Placement, SubmitRequest, WalkPolicy
from runtender.settings import Settings

VM_RUNTIME = "gce"
SERVED_RUNTIMES = (VM_RUNTIME, "gke")
"""What this plane can run a job on."""
GKE_RUNTIMES = ("gke", "ray")
"""Runtimes that are planned for Kubernetes; Ray only with `ray_mode` gke."""

# Compute Engine's bounds of `maxRunDuration`.
_SHORTEST_FENCE = timedelta(seconds=30)
_LONGEST_FENCE = timedelta(days=120)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hardware:
    """The machine of a job. `gpu_type` is the short name, None on a CPU job."""

    machine_type: str
    gpu_type: str | None = None
    accelerators: int = 0
    spot: bool = False

    @property
    def kind(self) -> str:
        """`gpu` or `cpu`."""
        return "gpu" if self.gpu_type else "cpu"


@dataclass(frozen=True, kw_only=True, slots=True)
class HardwareWish:
    """What was asked for: a kind of hardware, and as much of the rest as was said.

    `default_machine` is for all jobs of a config, `machine_type` for this one.
    """

    hardware: str
    gpu_type: str | None
    count: int
    default_machine: str
    machine_type: str | None
    spot: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Spans:
    """How long a job may wait for capacity and run, and when the platform itself ends it."""

    walk: WalkPolicy
    capacity_wait: timedelta
    run_limit: timedelta
    max_run_duration: timedelta


def choose_hardware(
    reader: FieldReader, path: str, wish: HardwareWish, catalogue: Catalogue = machines.SHIPPED
) -> Hardware | None:
    """Return the machine that fits what was asked for; None, with a fault below `path`, where none does."""
    on_gpu = wish.hardware == "gpu"
    if on_gpu and wish.gpu_type is None:
        remedy = f"write one of {', '.join(catalogue.gpus)}, or hardware cpu"
        reader.fault(f"{path}.gpu_type", "the hardware is gpu, but which GPU is not said", remedy)
        return None
    gpu = wish.gpu_type.upper() if on_gpu and wish.gpu_type else None
    if gpu is not None and not reader.known(gpu, catalogue.gpus, f"{path}.gpu_type", "a known GPU"):
        return None
    try:
        machine = machines.resolve_machine_type(
            hardware=wish.hardware,
            gpu_type=gpu,
            count=wish.count,
            default=wish.default_machine,
            override=wish.machine_type,
            catalogue=catalogue,
        )
        machines.check_provisioning(machine, spot=wish.spot, catalogue=catalogue)
    except ValueError as error:
        reader.fault(f"{path}.machine_type" if wish.machine_type else path, str(error))
        return None
    return Hardware(machine_type=machine, gpu_type=gpu, accelerators=wish.count if gpu else 0, spot=wish.spot)


def spans_for(
    reader: FieldReader, settings: Settings, limits: Limits, walk: WalkPolicy, *, on_gpu: bool
) -> Spans:
    """Return a job's spans, scaled like the settings; faults a run that outlives what the platform allows.

    The outer fence leaves the run its whole limit after the longest boot, and then a margin for our own
    teardown.
    """
    scale, timing = settings.time_scale, settings.timing
    wait = (limits.capacity_wait or walk.max_wall) / scale
    run_limit = limits.run / scale if limits.run else settings.run_limit
    boot = max(timing.boot_limit, timing.gpu_boot_minimum) if on_gpu else timing.boot_limit
    fence = timedelta(seconds=ceil((boot + run_limit + timing.fence_margin).total_seconds()))
    if fence > _LONGEST_FENCE:
        field = "limits.run" if limits.run else "SF_BATCH_JOB_WAIT_S"
        problem = f"the machine would live {fence.days} days of at most 120"
        reader.fault(field, problem, "choose a shorter limit")
    return Spans(
        walk=replace(walk, max_wall=wait, backoff=walk.backoff / scale, backoff_max=walk.backoff_max / scale),
        # A wall that is switched off must not let a job wait for ever.
        capacity_wait=wait or settings.run_limit,
        run_limit=run_limit,
        max_run_duration=max(_SHORTEST_FENCE, fence),
    )


def vm_plan(
    *,
    settings: Settings,
    request: SubmitRequest,
    hardware: Hardware,
    spans: Spans,
    image: str,
    placements: tuple[Placement, ...],
    key: JobKey,
    catalogue: Catalogue = machines.SHIPPED,
) -> JobPlan:
    """Return the plan of a job on one VM, without what the VM's container is to do."""
    unit = unit_of(hardware.machine_type, hardware.accelerators, catalogue)
    own = machine_of(hardware.machine_type, catalogue, accelerators=hardware.accelerators, spot=hardware.spot)
    plan = JobPlan(
        runtime="gce",
        kind=request.kind,
        name="",
        hardware=hardware.kind,
        gpu_type=hardware.gpu_type,
        machine_type=hardware.machine_type,
        vcpus=own.vcpus,
        accelerator_type=machines.accelerator_type(hardware.gpu_type, catalogue) if hardware.gpu_type else "",
        accelerator_count=hardware.accelerators,
        spot=hardware.spot,
        disk_type=own.disk_type,
        on_host_maintenance=own.on_host_maintenance,
        shm_size_bytes=unit.shared_memory_bytes,
        image_uri=image,
        service_account=settings.compute_sa,
        status_bucket=settings.status_bucket,
        labels=_labels(request.labels, key.run_id),
        priority=request.priority,
        placements=with_alternatives(
            placements, own, settings, catalogue, accelerators=hardware.accelerators
        ),
        walk=spans.walk,
        capacity_wait=spans.capacity_wait,
        run_limit=spans.run_limit,
        max_run_duration=spans.max_run_duration,
    )
    return for_attempt(plan, settings, key)


def for_attempt(plan: JobPlan, settings: Settings, key: JobKey) -> JobPlan:
    """Return the plan under another attempt's name and folders; all else stays as it was accepted."""
    text = ids.job_key(key.run_id, key.family, key.attempt)
    return replace(
        plan,
        name=ids.gke_job_id(text) if plan.runtime == "gke" else ids.gce_instance_id(text),
        cells_uri=f"{settings.cells_prefix}/{key.run_id}/{text}",
        logs_uri=f"gs://{settings.code_bucket}/runs/logs/{text}",
    )


def check_deployment(reader: FieldReader, settings: Settings) -> None:
    """Fault what a VM cannot do without: an identity that may write its markers, and a network to be in."""
    if not settings.compute_sa:
        reader.fault("SF_COMPUTE_SA", "is not set", "set it to the workers' service account")
    if not settings.subnetwork_uri:
        reader.fault("SF_SUBNETWORK_URI", "is not set", "set it to the subnet that workers run in")


def _labels(given: Mapping[str, str], run_id: str) -> Mapping[str, str]:
    """The caller's labels under ours: `run_id` and `runtime` are what older queries filter by."""
    return {**given, "run_id": run_id[:63], "runtime": "gce"}

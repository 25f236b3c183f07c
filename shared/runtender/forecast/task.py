"""The planner of plain tasks: one container, run once, with nothing else known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from runtender import ids
from runtender.forecast import machines
from runtender.forecast.catalogue import Catalogue
from runtender.forecast.cost import check_cap, estimate
from runtender.forecast.images import check_image
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.task_words import check_said, names_secrets
from runtender.forecast.terms import (
    Hardware,
    HardwareWish,
    check_deployment,
    choose_hardware,
    spans_for,
    vm_plan,
)
from runtender.forecast.validation import (
    MOST_WORKERS,
    FieldReader,
    Kind,
    block,
    choice,
    list_of,
    optional,
    text,
    whole,
    word,
)
from runtender.model import JobPlan, Placement, SubmitRequest, WalkPolicy
from runtender.settings import Settings

if TYPE_CHECKING:
    from runtender.forecast.gke_run import ClusterName, Clusters

GKE = "gke"

TASK_FIELDS: Mapping[str, Kind] = {
    "name": text(128),
    "image": optional(text()),
    "command": list_of(word()),
    "args": list_of(word()),
    "env": block(),
    "workers": whole(most=MOST_WORKERS),
    "hardware": choice("cpu", "gpu"),
    "gpu_type": optional(text(63)),
    "accelerator_count": whole(),
    "machine_type": text(63),
    "runtime": choice("gce", "gke"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskConfig:
    """A validated task. `image` None: the message's, else the plane's."""

    name: str
    image: str | None = None
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workers: int = 1
    hardware: str = "cpu"
    gpu_type: str | None = None
    accelerator_count: int = 1
    machine_type: str = machines.AUTO
    runtime: str = "gce"


def parse_task(raw: Mapping[str, Any]) -> TaskConfig:
    """Read a task's config; raises `Rejected` with every fault, each naming its field and what to write."""
    reader = FieldReader()
    reader.refuse_depth(raw)
    fields = reader.fields(raw, "", TASK_FIELDS, required=("name",))
    check_said(reader, fields)
    reader.finish()
    return TaskConfig(**fields)


def task_run_id(task: TaskConfig) -> str:
    """Return the run id of a task: equal for equal configs."""
    return ids.run_id(task.name, asdict(task))


def plan_task(
    task: TaskConfig,
    request: SubmitRequest,
    settings: Settings,
    *,
    placements: tuple[Placement, ...],
    walk: WalkPolicy,
    attempt: int = 1,
    knowledge: Knowledge | None = None,
    clusters: Clusters | None = None,
) -> JobPlan:
    """Return the plan of a task's one job; raises `Rejected` with every reason why it cannot be served."""
    reader = FieldReader()
    knowledge = knowledge or Knowledge()
    catalogue = knowledge.catalogue
    _check_request(reader, task, request, settings)
    image = task.image or request.image or settings.container_image
    if not image:
        reader.fault("image", "is missing", "write the container image to run")
    else:
        check_image(reader, settings, image)
    hardware = _hardware(reader, task, catalogue)
    spans = spans_for(reader, settings, request.limits, walk, on_gpu=task.hardware == "gpu")
    if hardware is None:
        raise reader.rejection()
    reader.finish()
    plan = vm_plan(
        settings=settings,
        request=request,
        hardware=hardware,
        spans=spans,
        image=image,
        placements=placements,
        key=ids.JobKey(run_id=task_run_id(task), family=ids.TASK, attempt=attempt),
        catalogue=catalogue,
    )
    # The task has the machine to itself.
    cores = machines.shape_of(hardware.machine_type, catalogue).vcpus
    plan = replace(plan, command=task.command, args=task.args, env=task.env, slot_cores=cores)
    if task.runtime == GKE:
        plan = _on_pods(plan, task, settings, clusters or {}, catalogue, attempt)
    cost = estimate(plan, knowledge.prices, catalogue, time_scale=settings.time_scale)
    check_cap(reader, request.limits.cost_usd, {ids.TASK: cost})
    reader.finish()
    return plan


def task_cluster(task: TaskConfig, settings: Settings) -> ClusterName | None:
    """Return the standing cluster that a task runs on; None for one on a VM."""
    if task.runtime != GKE or not settings.gke_cluster:
        return None
    from runtender.forecast.gke_run import ClusterName  # noqa: PLC0415 - cold start

    return ClusterName.parse(settings.gke_cluster)


def _on_pods(
    plan: JobPlan,
    task: TaskConfig,
    settings: Settings,
    clusters: Clusters,
    catalogue: Catalogue,
    attempt: int,
) -> JobPlan:
    key = ids.JobKey(run_id=task_run_id(task), family=ids.TASK, attempt=attempt)
    from runtender.forecast.gke_run import on_cluster, on_pods, placed  # noqa: PLC0415 - cold start

    named = task_cluster(task, settings)
    facts = clusters.get(named) if named else None
    plan = on_pods(plan, settings, key, task.workers)
    kubernetes = on_cluster(plan, named, facts, settings, catalogue, requested=task.workers)
    return placed(replace(plan, kubernetes=kubernetes))


def _hardware(reader: FieldReader, task: TaskConfig, catalogue: Catalogue) -> Hardware | None:
    if task.gpu_type and task.hardware == "cpu":
        reader.fault("config.gpu_type", "the hardware is cpu", 'leave it out, or write "hardware": "gpu"')
    wish = HardwareWish(
        hardware=task.hardware,
        gpu_type=task.gpu_type,
        count=task.accelerator_count,
        default_machine=machines.AUTO,
        machine_type=task.machine_type,
    )
    return choose_hardware(reader, "config", wish, catalogue)


def _check_request(reader: FieldReader, task: TaskConfig, request: SubmitRequest, settings: Settings) -> None:
    for name in ("families", "models", "overrides"):
        if getattr(request, name):
            reader.fault(name, "means nothing to a task", "leave it out")
    if task.runtime == GKE:
        if not settings.gke_cluster:
            reader.fault("SF_GKE_CLUSTER", "is not set", "set it to the cluster that tasks run on")
        if not task.command and names_secrets(task.env):
            problem = (
                "is missing: on gke it is run by what reads the secrets, which knows no image's entry point"
            )
            reader.fault("command", problem, "write the image's entry point")
        return
    check_deployment(reader, settings)
    if task.workers > 1:
        reader.fault("workers", f"{task.workers} workers: gce is single-VM execution only", "write 1")

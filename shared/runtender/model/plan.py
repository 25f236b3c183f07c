"""What was asked for, and the plan that was made of it: fixed when a run is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from runtender.model.words import Json, SubmitAction, SubmitKind


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What the caller allows a run to take. None: the plane's default (for cost: no cap)."""

    capacity_wait: timedelta | None = None
    run: timedelta | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveLimit:
    """How much of a plane's jobs may be alive at once: of all, or of those with a label. None: as much as there is."""

    label: tuple[str, str] | None = None
    jobs: int | None = None
    vcpus: int | None = None
    gpus: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmitRequest:
    """A validated message of the submit topic. `config` is the JSON object as sent, `message_id` Pub/Sub's."""

    action: SubmitAction = SubmitAction.SUBMIT
    kind: SubmitKind = SubmitKind.FORECAST
    request_id: str
    message_id: str = ""
    published_at: datetime
    run_id: str | None = None
    job_key: str | None = None
    config: Json | None = None
    config_uri: str | None = None
    families: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    overrides: Mapping[str, Json] = field(default_factory=dict)
    force: bool = False
    every: timedelta | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    image: str | None = None
    package_uri: str | None = None
    entrypoint: str | None = None
    priority: int = 0
    requested_by: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """Another machine that can do a plan's work: of another series, or sold another way."""

    machine_type: str
    vcpus: int
    disk_type: str
    on_host_maintenance: str
    spot: bool = False

    @property
    def label(self) -> str:
        """`n2d-standard-8`, or `n2d-standard-8 spot`."""
        return f"{self.machine_type} spot" if self.spot else self.machine_type


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """One place to try: a zone of a region (zone None: the region's own choice) and the subnet to use there.

    `machine` None is the plan's own.
    """

    region: str
    zone: str | None
    subnetwork_uri: str = ""
    machine: Machine | None = None

    @property
    def machine_label(self) -> str:
        """The other machine's label; empty for the plan's own."""
        return self.machine.label if self.machine else ""

    @property
    def location(self) -> str:
        """The zone where there is one, else the region."""
        return self.zone or self.region

    @property
    def label(self) -> str:
        """`region/zone`, or `region/auto`; with the machine behind it where it is not the plan's own."""
        return f"{self.region}/{self.zone or 'auto'} {self.machine_label}".rstrip()


@dataclass(frozen=True, kw_only=True, slots=True)
class WalkPolicy:
    """How patiently capacity is looked for (spec: capacity policy). A bound of 0 is switched off.

    `preflight`: quota is looked at before each pass. `wait_for_quota`: a job waits for quota instead of ending without it.
    """

    max_attempts: int = 8
    max_wall: timedelta = timedelta(seconds=2700)
    max_passes: int = 0
    backoff: timedelta = timedelta(seconds=45)
    backoff_multiplier: float = 2.0
    backoff_max: timedelta = timedelta(seconds=300)
    preflight: bool = True
    wait_for_quota: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePool:
    """Equal nodes of a cluster that is made for one job: `start` of them at first, between `least` and `most` later."""

    name: str
    machine_type: str
    disk_type: str
    start: int
    least: int
    most: int
    accelerator_type: str = ""
    accelerator_count: int = 0
    spot: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RayNodes:
    """Equal nodes of a Ray cluster. `most_nodes` is where autoscaling ends; without it, `node_count`."""

    machine_type: str
    node_count: int
    least_nodes: int
    most_nodes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RayShape:
    """The nodes of a Ray cluster; a pool that nothing runs in is None."""

    cluster_name: str
    head_machine_type: str
    cpu: RayNodes | None = None
    gpu: RayNodes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class KubernetesPlan:
    """What a job on Kubernetes needs beside its plan. The plan's `worker_count` is the effective number of workers.

    `mode` is `job` (an Indexed Job) or `ray`. `cluster_location` is None until the cluster that stands was looked up; `pools`
    is empty for it. `job_deadline` bounds the Job from its creation, `pod_deadline` a pod from its start. `server_minor` is the
    cluster's version 1.x. `node_machine_type` is that of the nodes where it is not the plan's own. `retries_per_index` and
    `most_failed_indexes` say how much Kubernetes itself makes good: a failed index again, and how many may fail (None: all).
    `ray` is None for an Indexed Job.
    """

    mode: str
    cluster_name: str
    cluster_location: str | None = None
    ephemeral: bool = False
    keep_cluster: bool = False
    namespace: str = "default"
    requested_workers: int = 1
    job_deadline: timedelta
    pod_deadline: timedelta
    server_minor: int = 34
    autopilot: bool = False
    node_machine_type: str = ""
    compute_class: str = ""
    service_account_name: str = ""
    retries_per_index: int = 0
    most_failed_indexes: int | None = None
    pools: tuple[NodePool, ...] = ()
    ray: RayShape | None = None

    @property
    def max_cluster_age(self) -> timedelta:
        """How old a cluster of this job can get: its nodes end by themselves after that."""
        return self.job_deadline


@dataclass(frozen=True, kw_only=True, slots=True)
class JobPlan:
    """Everything needed to render the requests of one job, fixed when the run is accepted.

    `name` is the platform id (the VM or Job name). `cells_uri` and `logs_uri` are the job's folders; the placement's
    nonce is appended where a worker is told its own. `models` is empty for a task, `command` and `args` for a forecast.
    `vcpus` are the machine's, 0 where they are not known.
    """

    runtime: str
    kind: SubmitKind = SubmitKind.FORECAST
    name: str
    models: tuple[str, ...] = ()
    hardware: str = "cpu"
    gpu_type: str | None = None
    machine_type: str
    vcpus: int = 0
    accelerator_type: str = ""
    accelerator_count: int = 0
    spot: bool = False
    disk_type: str = "pd-balanced"
    boot_disk_gb: int = 100
    on_host_maintenance: str = "TERMINATE"
    worker_count: int = 1
    slot_cores: int = 1
    slots: int = 1
    shm_size_bytes: int = 0
    image_uri: str
    package_uri: str = ""
    config_uri: str = ""
    entrypoint: str = ""
    driver_args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    service_account: str = ""
    status_bucket: str
    cells_uri: str = ""
    logs_uri: str = ""
    source_table: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    placements: tuple[Placement, ...]
    walk: WalkPolicy = WalkPolicy()
    capacity_wait: timedelta
    run_limit: timedelta
    max_run_duration: timedelta
    expected_cells: int | None = None
    resource_plan: Json | None = None
    kubernetes: KubernetesPlan | None = None

    def at(self, placement: Placement) -> JobPlan:
        """Return the plan with the machine of one of its placements."""
        other = placement.machine
        if other is None:
            return self
        return replace(
            self,
            machine_type=other.machine_type,
            vcpus=other.vcpus,
            disk_type=other.disk_type,
            on_host_maintenance=other.on_host_maintenance,
            spot=other.spot,
        )

"""From a submit message and its config to the plans of its jobs: the same for the plane, which then runs them, and for a
client that only wants to see them. No I/O: what lies in Cloud Storage comes as arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from runtender.capacity.candidates import Region, cluster_candidates, zonal_candidates
from runtender.capacity.policy import policy_for
from runtender.forecast.blocks import Capacity, RunConfig
from runtender.forecast.canonical import run_id_of, to_document
from runtender.forecast.config import parse_config
from runtender.forecast.cost import total
from runtender.forecast.families import pool_families
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.plan import costs
from runtender.forecast.profiles import profile_path, usable_profiles, wanted_key
from runtender.forecast.run import Places, plan_run
from runtender.forecast.selection import runtime_of, select_models
from runtender.forecast.task import TaskConfig, parse_task, plan_task, task_cluster, task_run_id
from runtender.forecast.terms import GKE_RUNTIMES
from runtender.forecast.validation import FieldReader
from runtender.ids import TASK
from runtender.model import JobPlan, Placement, SubmitKind, SubmitRequest, WalkPolicy
from runtender.settings import Settings

if TYPE_CHECKING:
    from runtender.forecast.gke_run import ClusterName, Clusters


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A config made ready: its run id, the plan of each family's job, and what to store for the workers."""

    run_id: str
    families: Mapping[str, JobPlan]
    stored_config: Mapping[str, Any] | None = None
    telemetry: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """What plans are made on: the plane's settings, the regions it may use, what is known of machines, the stored profiles
    by family, and the standing clusters by the names that were asked for.
    """

    settings: Settings
    regions: tuple[Region, ...]
    knowledge: Knowledge
    stored_profiles: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    clusters: Clusters = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A message with its config, read and found right. `config` is the run's, or a task's."""

    request: SubmitRequest
    run_id: str
    config: RunConfig | TaskConfig

    def profile_paths(self) -> dict[str, str]:
        """Return the paths of the stored profiles that the message's families would use; none for a task."""
        if isinstance(self.config, TaskConfig):
            return {}
        config = self.config
        keys = {family: wanted_key(config, family) for family in pool_families(config.models)}
        return {family: profile_path(key) for family, key in keys.items() if key is not None}

    def clusters_wanted(self, settings: Settings, knowledge: Knowledge) -> frozenset[ClusterName]:
        """Return the standing clusters that the message's jobs are to run on."""
        config = self.config
        if isinstance(config, TaskConfig):
            cluster = task_cluster(config, settings)
            return frozenset([cluster] if cluster else [])
        # What is wrong with the families is the planner's to say.
        families = pool_families(select_models(FieldReader(), config, self.request))
        on_pods = [family for family in families if runtime_of(config, family) in GKE_RUNTIMES]
        if not on_pods:
            return frozenset()
        from runtender.forecast.gke_run import cluster_wanted  # noqa: PLC0415 - cold start

        named = [
            cluster_wanted(config, self.request, settings, family, knowledge.catalogue) for family in on_pods
        ]
        return frozenset(name for name in named if name is not None)


def read_asked(request: SubmitRequest, raw: Mapping[str, Any], knowledge: Knowledge) -> Asked:
    """Read a message's config; raises `Rejected` with all its faults."""
    if request.kind is SubmitKind.TASK:
        task = parse_task(raw)
        return Asked(request=request, run_id=task_run_id(task), config=task)
    config = parse_config(raw, knowledge.catalogue)
    return Asked(request=request, run_id=run_id_of(config), config=config)


def plan_subject(
    asked: Asked, ground: Ground, attempts: Mapping[str, int], *, only_served: bool = True
) -> Subject:
    """Plan every job of a message; raises `Rejected` with every reason why it cannot be served.

    Without `only_served` what can be planned but not run yet is planned too.
    """
    if isinstance(asked.config, TaskConfig):
        return _task(asked, asked.config, ground, attempts)
    config = asked.config
    profiles = usable_profiles(config, pool_families(config.models), ground.stored_profiles)
    plans = plan_run(
        config,
        asked.request,
        ground.settings,
        _places(config, ground, only_served=only_served),
        run_id=asked.run_id,
        attempts=attempts,
        knowledge=replace(ground.knowledge, profiles=profiles),
    )
    sizing: dict[str, Any] = {
        family: {
            "family": family,
            "plans": [plan.resource_plan],
            "translation": {},
            "profile": (plan.resource_plan or {}).get("profile"),
        }
        for family, plan in plans.items()
    }
    return Subject(
        run_id=asked.run_id,
        families=plans,
        stored_config=to_document(config),
        telemetry={"sizing": sizing},
        cost=total(costs(plans, ground.settings, ground.knowledge)),
    )


def _task(asked: Asked, task: TaskConfig, ground: Ground, attempts: Mapping[str, int]) -> Subject:
    plan = plan_task(
        task,
        asked.request,
        ground.settings,
        placements=_zones(ground),
        walk=policy_for(task.runtime),
        attempt=attempts.get(TASK, 1),
        knowledge=ground.knowledge,
        clusters=ground.clusters,
    )
    plans = {TASK: plan}
    cost = total(costs(plans, ground.settings, ground.knowledge))
    return Subject(run_id=asked.run_id, families=plans, cost=cost)


def _places(config: RunConfig, ground: Ground, *, only_served: bool) -> Places:
    settings, compute = ground.settings, config.compute
    return Places(
        zones=_zones(ground),
        walk=_patience(compute.capacity, "gce"),
        cluster_zones=cluster_candidates(
            settings.region, settings.subnetwork_uri, ground.regions, compute.ray_regions or ()
        ),
        cluster_walk=_patience(compute.capacity, "gke"),
        clusters=ground.clusters,
        only_served=only_served,
    )


def _patience(capacity: Capacity, service: str) -> WalkPolicy:
    policy = policy_for(service, capacity.services.get(service), enabled=capacity.enabled)
    return replace(policy, preflight=capacity.preflight, wait_for_quota=capacity.wait_for_quota)


def _zones(ground: Ground) -> tuple[Placement, ...]:
    return zonal_candidates(ground.settings.region, ground.settings.subnetwork_uri, ground.regions)

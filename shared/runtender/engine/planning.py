"""From a submit message and its config to the plans of its jobs: the same for the plane, which then runs them, and for a
client that only wants to see them. No I/O: what lies in Cloud Storage comes as arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from runtender.capacity.candidates import Region, zonal_candidates
from runtender.capacity.policy import policy_for
from runtender.forecast.blocks import Capacity
from runtender.forecast.canonical import run_id_of, to_document
from runtender.forecast.config import parse_config
from runtender.forecast.cost import total
from runtender.forecast.families import pool_families
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.plan import costs, plan_run
from runtender.forecast.profiles import profile_path, usable_profiles, wanted_key
from runtender.forecast.task import parse_task, plan_task, task_run_id
from runtender.ids import TASK
from runtender.model import JobPlan, Placement, SubmitKind, SubmitRequest, WalkPolicy
from runtender.settings import Settings


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
    """What plans are made on: the plane's settings, the regions it may use, what is known of machines, and the stored
    profiles by family.
    """

    settings: Settings
    regions: tuple[Region, ...]
    knowledge: Knowledge
    stored_profiles: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)


def profile_paths(request: SubmitRequest, raw: Mapping[str, Any], knowledge: Knowledge) -> dict[str, str]:
    """Return the paths of the stored profiles that a message's families would use; none for a task."""
    if request.kind is SubmitKind.TASK:
        return {}
    config = parse_config(raw, knowledge.catalogue)
    keys = {family: wanted_key(config, family) for family in pool_families(config.models)}
    return {family: profile_path(key) for family, key in keys.items() if key is not None}


def run_id_for(request: SubmitRequest, raw: Mapping[str, Any], knowledge: Knowledge) -> str:
    """Return the run id of a message's config; raises `Rejected` with all the config's faults."""
    if request.kind is SubmitKind.TASK:
        return task_run_id(parse_task(raw))
    return run_id_of(parse_config(raw, knowledge.catalogue))


def plan_subject(
    request: SubmitRequest, raw: Mapping[str, Any], ground: Ground, attempts: Mapping[str, int]
) -> Subject:
    """Plan every job of a message; raises `Rejected` with every reason why it cannot be served."""
    if request.kind is SubmitKind.TASK:
        return _task(request, raw, ground, attempts)
    config = parse_config(raw, ground.knowledge.catalogue)
    profiles = usable_profiles(config, pool_families(config.models), ground.stored_profiles)
    capacity = config.compute.capacity
    plans = plan_run(
        config,
        request,
        ground.settings,
        placements=_zones(ground.settings, ground.regions),
        walk=_patience(capacity),
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
        run_id=run_id_of(config),
        families=plans,
        stored_config=to_document(config),
        telemetry={"sizing": sizing},
        cost=total(costs(plans, ground.settings, ground.knowledge)),
    )


def _task(
    request: SubmitRequest, raw: Mapping[str, Any], ground: Ground, attempts: Mapping[str, int]
) -> Subject:
    task = parse_task(raw)
    plan = plan_task(
        task,
        request,
        ground.settings,
        placements=_zones(ground.settings, ground.regions),
        walk=policy_for("gce"),
        attempt=attempts.get(TASK, 1),
        knowledge=ground.knowledge,
    )
    plans = {TASK: plan}
    cost = total(costs(plans, ground.settings, ground.knowledge))
    return Subject(run_id=task_run_id(task), families=plans, cost=cost)


def _patience(capacity: Capacity) -> WalkPolicy:
    policy = policy_for("gce", capacity.services.get("gce"), enabled=capacity.enabled)
    return replace(policy, preflight=capacity.preflight, wait_for_quota=capacity.wait_for_quota)


def _zones(settings: Settings, regions: Iterable[Region]) -> tuple[Placement, ...]:
    return zonal_candidates(settings.region, settings.subnetwork_uri, regions)

"""The forecast planner: a run config and a submit message in, one complete job plan per family out, each for its runtime.

Pure: what it needs of the world (settings, placements, clusters, the attempt) comes as arguments, and a plan holds all that
rendering the job's requests needs later. Everything that cannot work is rejected here, before anything is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from runtender import ids
from runtender.forecast.blocks import RunConfig
from runtender.forecast.canonical import run_id_of
from runtender.forecast.cost import check_cap
from runtender.forecast.families import PYTHON_FAMILIES, models_of, pool_families
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.plan import Shared, costs, on_vm, staged
from runtender.forecast.selection import check_served, runtime_of, select_models
from runtender.forecast.terms import GKE_RUNTIMES, check_deployment
from runtender.forecast.validation import FieldReader
from runtender.model import JobPlan, Placement, SubmitRequest, WalkPolicy
from runtender.settings import Settings

if TYPE_CHECKING:
    from runtender.forecast.gke_run import Clusters


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Where jobs may be placed, and how patiently: VMs in zones; clusters in zones of their own order, or those that stand.

    `only_served`: what this plane can plan but not run yet is refused.
    """

    zones: tuple[Placement, ...]
    walk: WalkPolicy
    cluster_zones: tuple[Placement, ...] = ()
    cluster_walk: WalkPolicy = field(default_factory=WalkPolicy)
    clusters: Clusters = field(default_factory=dict)
    only_served: bool = True


def plan_run(
    config: RunConfig,
    request: SubmitRequest,
    settings: Settings,
    places: Places,
    *,
    run_id: str | None = None,
    attempts: Mapping[str, int] | None = None,
    knowledge: Knowledge | None = None,
) -> dict[str, JobPlan]:
    """Return the plan of each family's job, in the config's order; attempts that are not given are the first.

    `run_id` is the config's, where the caller has it.
    Raises `Rejected` with every reason why the run cannot be served as it was asked for.
    """
    reader = FieldReader()
    models = select_models(reader, config, request)
    check_served(reader, config, request, models)
    run_id = run_id or run_id_of(config)
    shared = Shared(
        reader=reader,
        config=config,
        request=request,
        settings=settings,
        staged=staged(reader, request, settings, run_id),
        placements=places.zones,
        walk=places.walk,
        run_id=run_id,
        knowledge=knowledge or Knowledge(),
    )
    plans = {
        family: _plan(shared, places, family, models_of(models, family), (attempts or {}).get(family, 1))
        for family in pool_families(models)
        if family in PYTHON_FAMILIES
    }
    found = {family: plan for family, plan in plans.items() if plan is not None}
    if any(plan.kubernetes is None or plan.kubernetes.ephemeral for plan in found.values()) or not found:
        check_deployment(reader, settings)
    check_cap(reader, request.limits.cost_usd, costs(found, settings, shared.knowledge))
    reader.finish()
    return found


def _plan(
    shared: Shared, places: Places, family: str, models: tuple[str, ...], attempt: int
) -> JobPlan | None:
    key = ids.JobKey(run_id=shared.run_id, family=family, attempt=attempt)
    if runtime_of(shared.config, family) not in GKE_RUNTIMES:
        return on_vm(shared, key, models)
    # Only here: a run on VMs needs nothing of it.
    from runtender.forecast.gke_run import on_kubernetes  # noqa: PLC0415 - cold start

    there = replace(shared, placements=places.cluster_zones, walk=places.cluster_walk)
    return on_kubernetes(there, key, models, places.clusters, only_served=places.only_served)

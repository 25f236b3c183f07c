"""What a submit would do, for `runtender plan` and `submit --dry-run`: it reads, and leaves everything as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtender.client.submission import Wishes, prepare
from runtender.client.world import World
from runtender.engine.clusters import MayNotLook, read_clusters
from runtender.engine.inputs import read_catalogue
from runtender.engine.planning import Ground, plan_subject, read_asked
from runtender.engine.preview import preview_document
from runtender.engine.quota import read_quota
from runtender.engine.tables import read_knowledge, read_profiles
from runtender.errors import Retryable
from runtender.forecast.gke_run import ClusterName
from runtender.ids import next_attempt
from runtender.observed import ClusterFacts
from runtender.wire.documents import run_from_document, run_path

_NOBODYS_REQUEST = "plan"


def plan_config(world: World, config: Mapping[str, Any], wishes: Wishes) -> dict[str, Any]:
    """Return what the plane would make of a submit: jobs, placements, requests, sizing, times, quota and cost.

    Raises `Rejected` with every reason why it would be refused. Quota that cannot be read is shown as not known.
    """
    request = prepare(world, config, _NOBODYS_REQUEST, wishes).request
    knowledge = read_knowledge(world.objects, world.settings)
    asked = read_asked(request, config, knowledge)
    ground = Ground(
        settings=world.settings,
        regions=read_catalogue(world.objects, world.settings.compute_fallback),
        knowledge=knowledge,
        stored_profiles=read_profiles(world.store, asked),
        clusters=_clusters(world, asked.clusters_wanted(world.settings, knowledge)),
    )
    attempts = _attempts(world, asked.run_id)
    subject = plan_subject(asked, ground, attempts, only_served=False)
    quota = read_quota(world.quota, subject.families.values())
    return preview_document(subject, ground, attempts, quota, world.clock.now())


def _clusters(world: World, wanted: frozenset[ClusterName]) -> Mapping[ClusterName, ClusterFacts]:
    """Return the standing clusters as they are found. One that this person may not look at is planned for unseen."""
    if world.clusters is None or not wanted:
        return {}
    try:
        return read_clusters(world.settings, world.clusters, wanted)
    except (MayNotLook, Retryable):
        return {}


def _attempts(world: World, run_id: str) -> Mapping[str, int]:
    snapshot = world.store.get(run_path(run_id))
    families = {} if snapshot is None else run_from_document(snapshot.data).families
    return {family: next_attempt(entry.attempt, force=True)[0] for family, entry in families.items()}

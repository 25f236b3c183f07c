"""What a submit would do, for `runtender plan` and `submit --dry-run`: it reads, and leaves everything as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runtender.client.submission import Wishes, prepare
from runtender.client.world import World
from runtender.engine.inputs import read_catalogue
from runtender.engine.planning import Ground, profile_paths, run_id_for
from runtender.engine.preview import preview, preview_document
from runtender.engine.tables import read_knowledge
from runtender.ids import next_attempt
from runtender.model import SubmitRequest
from runtender.wire.documents import run_from_document, run_path

_NOBODYS_REQUEST = "plan"


def plan_config(world: World, config: Mapping[str, Any], wishes: Wishes) -> dict[str, Any]:
    """Return what the plane would make of a submit: jobs, placements, requests, sizing, times and cost.

    Raises `Rejected` with every reason why it would be refused.
    """
    request = prepare(world, config, _NOBODYS_REQUEST, wishes).request
    knowledge = read_knowledge(world.objects, world.settings)
    regions = read_catalogue(world.objects, world.settings.compute_fallback)
    ground = Ground(settings=world.settings, regions=regions, knowledge=knowledge)
    ground = replace(ground, stored_profiles=_profiles(world, request, config, ground))
    shown = preview(request, config, ground, _attempts(world, run_id_for(request, config, knowledge)))
    return preview_document(shown, ground, world.clock.now())


def _profiles(
    world: World, request: SubmitRequest, config: Mapping[str, Any], ground: Ground
) -> dict[str, Mapping[str, Any] | None]:
    found = {
        family: world.store.get(path)
        for family, path in profile_paths(request, config, ground.knowledge).items()
    }
    return {family: None if snapshot is None else snapshot.data for family, snapshot in found.items()}


def _attempts(world: World, run_id: str) -> Mapping[str, int]:
    snapshot = world.store.get(run_path(run_id))
    families = {} if snapshot is None else run_from_document(snapshot.data).families
    return {family: next_attempt(entry.attempt, force=True)[0] for family, entry in families.items()}

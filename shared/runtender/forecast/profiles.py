"""What the cells of a family were measured to need: harvested from runs, kept, and used by later plans.

A profile is kept under a key that says for which kind of cell it holds: the family's models with their parameters, the
frequency, the horizon and the backtest. It is stored as it was measured; margins are laid on when it is used. A plan
carries under `profile` what it used and what its own run is to be kept as, so that a job can be harvested by its plan.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from runtender.forecast.blocks import ProfilePolicy, RunConfig
from runtender.forecast.families import models_of

SCHEMA = 1

_KEY_DIGITS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """What one cell needs, per axis; an axis that is None was not measured. Memory in bytes.

    `run_id` is the run it was harvested from, `n_cells` how many of its cells were counted.
    """

    cores: int | None = None
    memory_bytes: int | None = None
    device_bytes: int | None = None
    seconds_per_cell: float | None = None
    n_cells: int = 0
    run_id: str = ""


NOTHING_MEASURED = Profile()


def profile_key(config: RunConfig, family: str) -> str:
    """Return the key of the profile that holds for a family of this config: `<family>-<12 hex digits>`."""
    models = sorted(models_of(config.models, family))
    kind = {
        "models": {model: dict(config.model_params.get(model, {})) for model in models},
        "freq": config.data.freq,
        "horizon": config.data.horizon,
        "backtest": dict(config.backtest),
    }
    text = json.dumps(kind, sort_keys=True, separators=(",", ":"))
    return f"{family}-{hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]}"


def run_profile_key(run_id: str, family: str) -> str:
    """Return the key under which a run's own measure of a family is kept, for configs that name the run."""
    return f"{run_id}-{family}"


def wanted_key(config: RunConfig, family: str) -> str | None:
    """Return the key of the stored profile that a family's plan is to use; None where the config wants none.

    In mode `auto` only a run that is known to be large (`data.series_limit` times its models) is worth the look.
    """
    policy = config.compute.profile
    if policy.mode == "off" or policy.source in {"none", "baseline"}:
        return None
    if policy.source != "auto":
        return run_profile_key(policy.source, family)
    known_cells = (config.data.series_limit or 0) * len(models_of(config.models, family))
    return profile_key(config, family) if known_cells >= least_cells(policy) else None


def usable_profiles(
    config: RunConfig, families: Iterable[str], documents: Mapping[str, Mapping[str, Any] | None]
) -> dict[str, Profile]:
    """Return what is known of each family's cells, margins laid on; `documents` has the stored profiles by family.

    A run that was never measured has none; `source: baseline` asks for the shipped one.
    """
    policy = config.compute.profile
    if policy.mode == "off" or policy.source == "none":
        return {}
    stored = baselines() if policy.source == "baseline" else documents
    found = {family: stored.get(family) for family in families}
    return {
        family: with_margins(from_document(document), policy)
        for family, document in found.items()
        if document is not None
    }


@cache
def baselines() -> Mapping[str, Mapping[str, Any]]:
    """Return the profiles that this release brings, by family; each says how it was measured."""
    content = files(__package__).joinpath("baselines.json").read_text(encoding="utf-8")
    shipped: Mapping[str, Mapping[str, Any]] = json.loads(content)
    return shipped


def plan_note(config: RunConfig, family: str, run_id: str, used: Profile | None) -> dict[str, Any]:
    """Return what a plan says of profiles: the one it used, and the keys under which its own run is to be kept."""
    policy = config.compute.profile
    is_measured = policy.mode != "off" and policy.measure != "off"
    notes = []
    if is_measured and policy.measure == "controlled":
        notes.append("controlled measuring is not done here: the run itself is measured instead")
    return {
        "mode": policy.mode,
        "source": policy.source,
        "used": None if used is None else {"run_id": used.run_id, "n_cells": used.n_cells},
        "keep_as": [profile_key(config, family), run_profile_key(run_id, family)] if is_measured else [],
        "min_cells": least_cells(policy),
        "notes": notes,
    }


def least_cells(policy: ProfilePolicy) -> int:
    """Return how many cells a run must have to be measured: a small one says little, unless asked for always."""
    return 0 if policy.mode == "always" else policy.min_cells


def harvested(
    resource_plan: Mapping[str, Any] | None, summary: Mapping[str, Any], run_id: str, measured_at: datetime
) -> dict[str, dict[str, Any]]:
    """Return the documents to store after a run, by path: `profiles/{key}`. None, if it is not to be kept or says nothing.

    `resource_plan` is the job's, `summary` the detail of its worker's summary.
    """
    note = (resource_plan or {}).get("profile") or {}
    profile = harvest(summary, run_id) if note.get("keep_as") else None
    if profile is None or profile.n_cells < note.get("min_cells", 0):
        return {}
    document = to_document(profile, measured_at)
    return {profile_path(key): document for key in note["keep_as"]}


def profile_path(key: str) -> str:
    """Return the path of a profile's document."""
    return f"profiles/{key}"


def harvest(summary: Mapping[str, Any], run_id: str) -> Profile | None:
    """Read what a worker's summary says of its cells: their seconds and the largest resident size of a slot.

    None where it says nothing that can be used.
    """
    n_cells = _positive(summary.get("n_cells"))
    if n_cells is None:
        return None
    seconds = _positive(summary.get("cell_seconds"))
    memory = _positive(summary.get("peak_rss_bytes"))
    if seconds is None and memory is None:
        return None
    return Profile(
        memory_bytes=None if memory is None else int(memory),
        seconds_per_cell=None if seconds is None else seconds / n_cells,
        n_cells=int(n_cells),
        run_id=run_id,
    )


def with_margins(profile: Profile, policy: ProfilePolicy) -> Profile:
    """Return the profile as a plan uses it: memory and time multiplied by the policy's margins."""
    return replace(
        profile,
        memory_bytes=_scaled(profile.memory_bytes, policy.memory_margin),
        device_bytes=_scaled(profile.device_bytes, policy.memory_margin),
        seconds_per_cell=None
        if profile.seconds_per_cell is None
        else profile.seconds_per_cell * policy.time_margin,
    )


def to_document(profile: Profile, measured_at: datetime) -> dict[str, Any]:
    """Return the document `profiles/{key}`."""
    return {
        "schema": SCHEMA,
        "cores": profile.cores,
        "memory_bytes": profile.memory_bytes,
        "device_bytes": profile.device_bytes,
        "seconds_per_cell": profile.seconds_per_cell,
        "n_cells": profile.n_cells,
        "run_id": profile.run_id,
        "measured_at": measured_at,
    }


def from_document(document: Mapping[str, Any]) -> Profile:
    """Read a document; an axis of another type than a positive number counts as not measured."""
    whole = {
        name: _positive(document.get(name)) for name in ("cores", "memory_bytes", "device_bytes", "n_cells")
    }
    counts = {name: math.ceil(value) for name, value in whole.items() if value is not None}
    return Profile(
        **counts,
        seconds_per_cell=_positive(document.get("seconds_per_cell")),
        run_id=str(document.get("run_id") or ""),
    )


def _positive(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        return None
    return value


def _scaled(value: int | None, margin: float) -> int | None:
    return None if value is None else math.ceil(value * margin)

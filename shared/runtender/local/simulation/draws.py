"""What stories of all kinds draw by chance: settings, and what is in store for machines and pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random

from runtender.local.simulation.guests import Behaviour, Death
from runtender.local.simulation.pods import PodBehaviour, PodDeath
from runtender.settings import Settings

_SPANS_S: Mapping[str, Sequence[int]] = {
    "resend_within": (60, 600),
    "create_grace": (60, 180),
    "stall_grace": (240, 2700),
    "orphan_grace": (120, 600),
    "watch_interval": (120, 600),
    "provision_wait": (0, 25),
    "busy_wait": (5, 30),
}


def an_environment(chance: Random, scarcity: Random, usual: Mapping[str, str]) -> dict[str, str]:
    """Draw what the deployment says: who removes machines, and how much may be alive or be created at once."""
    environment = dict(usual)
    if chance.random() < 0.3:
        environment["SF_GUEST_SELF_DELETE"] = "false"
    if scarcity.random() < 0.25:
        environment["SF_LIMITS"] = '[{"jobs": 1}]'
    # A counter for each job's creates, or one for all.
    environment["SF_API_BUDGET"] = scarcity.choice(("1", "10", "1000", "1000"))
    return environment


def some_spans(settings: Settings, chance: Random) -> Settings:
    """Draw the spans that matter, so that what is rare at the usual ones comes about too."""
    if chance.random() < 0.5:
        return settings
    spans = {name: timedelta(seconds=chance.choice(choices)) for name, choices in _SPANS_S.items()}
    return replace(settings, timing=replace(settings.timing, **spans))


def a_behaviour(chance: Random) -> Behaviour:
    """Draw what is in store for a machine."""
    return Behaviour(
        boot_s=chance.choice((1, 20, 120, 700)),
        work_s=chance.choice((5, 240, 240, 900, 3000)),
        exit_code=chance.choice((0, 0, 0, 3)),
        cells_failed=chance.choice((0, 0, 1, 4)),
        summary=chance.random() < 0.8,
        pulls=chance.random() < 0.9,
        boots=chance.random() < 0.95,
        dies=chance.choice((None, None, None, *Death)),
        mute_when_stopped=chance.random() < 0.4,
    )


def a_pod_behaviour(chance: Random) -> PodBehaviour:
    """Draw what is in store for a pod. Of several workers most have to do well, or every job would end alike."""
    return PodBehaviour(
        work_s=chance.choice((5, 60, 240, 240, 900, 3000)),
        exit_code=chance.choice((0, 0, 0, 0, 0, 3)),
        cells_failed=chance.choice((0, 0, 0, 1, 4)),
        summary=chance.random() < 0.85,
        complete=chance.random() < 0.95,
        out_of_memory=chance.random() < 0.05,
        dies=chance.choice((*(None,) * 12, *PodDeath)),
        obeys=chance.random() < 0.8,
        outlives_node=chance.random() < 0.3,
    )


def some_idle_ticks(chance: Random) -> int | None:
    """Return how many ticks in a row come while there is nothing to do: mostly a few, which is half of all ticks left out."""
    return None if chance.random() < 0.2 else 2

"""From a config and some wishes to a message on the submit topic, with everything checked that can be checked here.

The checks are the plane's own, so a fault has the same words wherever it is found. All are made before anything is
stored or published.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from runtender.client.object_uri import ObjectUri
from runtender.client.panel_check import PanelView, check_panel
from runtender.client.requests import Message, publish, read_back
from runtender.client.world import World
from runtender.engine.tables import read_knowledge
from runtender.errors import Fault, Rejected
from runtender.forecast.blocks import RunConfig
from runtender.forecast.config import parse_config
from runtender.forecast.selection import check_served, select_models
from runtender.forecast.task import parse_task
from runtender.forecast.validation import FieldReader
from runtender.model import SubmitKind, SubmitRequest
from runtender.wire.durations import format_duration
from runtender.wire.messages import MAX_INLINE_CONFIG_BYTES


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """What the caller asked for beside the config: the options of the command, by their names.

    `priority`: a higher one goes first among the jobs that wait for a limit of the plane (SF_LIMITS).
    """

    kind: SubmitKind = SubmitKind.FORECAST
    force: bool = False
    every: timedelta | None = None
    run_limit: timedelta | None = None
    capacity_wait: timedelta | None = None
    max_cost_usd: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    models: Sequence[str] = ()
    families: Sequence[str] = ()
    image: str | None = None
    package_uri: str | None = None
    entrypoint: str | None = None
    priority: int = 0


def submit_config(world: World, config: Mapping[str, Any], request_id: str, wishes: Wishes) -> PanelView:
    """Check and publish a submit message; return what was seen of the panel.

    Raises `Rejected` with every fault of message, config and panel, and has then published nothing.
    """
    prepared = _prepared(world, config, request_id, wishes)
    seen = _checked(world, prepared.message, config, wishes.kind)
    if prepared.stored is not None:
        # Named by its content: what is there already is the same config.
        world.objects.create(prepared.stored.bucket, prepared.stored.name, prepared.body)
    publish(world, prepared.message)
    return seen


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A submit message that was not published, as the plane would read it."""

    message: Message
    request: SubmitRequest


def prepare(world: World, config: Mapping[str, Any], request_id: str, wishes: Wishes) -> Draft:
    """Return the message of a submit, and do nothing with it; raises `Rejected` with every fault of the message."""
    message = _prepared(world, config, request_id, wishes).message
    return Draft(message=message, request=read_back(world, message))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Prepared:
    """A message, and where its config is to be stored if it is too large to go along."""

    message: dict[str, Any]
    body: bytes
    stored: ObjectUri | None


def _prepared(world: World, config: Mapping[str, Any], request_id: str, wishes: Wishes) -> _Prepared:
    body = _canonical(config)
    large = _place_of(body, world.settings.code_bucket) if len(body) > MAX_INLINE_CONFIG_BYTES else None
    return _Prepared(message=_message(config, large, request_id, wishes), body=body, stored=large)


def _canonical(config: Mapping[str, Any]) -> bytes:
    """Return the config as the smallest JSON of its content, whatever it was read from."""
    try:
        return json.dumps(config, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        problem = f"holds what JSON cannot say: {error}"
        raise Rejected.because(
            "config", problem, "use texts, numbers, truth values, lists and objects"
        ) from error


def _place_of(body: bytes, bucket: str) -> ObjectUri:
    return ObjectUri(bucket, f"runs/submitted/{hashlib.sha256(body).hexdigest()[:32]}.json")


def _message(
    config: Mapping[str, Any], stored: ObjectUri | None, request_id: str, wishes: Wishes
) -> dict[str, Any]:
    """Return the message, without what was not asked for."""
    spans = {"capacity_wait": wishes.capacity_wait, "run": wishes.run_limit}
    limits: dict[str, Any] = {name: format_duration(span) for name, span in spans.items() if span is not None}
    if wishes.max_cost_usd is not None:
        limits["cost_usd"] = wishes.max_cost_usd
    options = {
        "families": list(wishes.families),
        "models": list(wishes.models),
        "force": wishes.force,
        "every": format_duration(wishes.every) if wishes.every is not None else None,
        "labels": wishes.labels,
        "limits": limits,
        "image": wishes.image,
        "package_uri": wishes.package_uri,
        "entrypoint": wishes.entrypoint,
        "priority": wishes.priority,
    }
    return {
        "action": "submit",
        "kind": wishes.kind.value,
        "request_id": request_id,
        **({"config": config} if stored is None else {"config_uri": str(stored)}),
        **{name: value for name, value in options.items() if value},
    }


def _checked(world: World, message: Message, config: Mapping[str, Any], kind: SubmitKind) -> PanelView:
    faults: list[Fault] = []
    request: SubmitRequest | None = None
    seen = PanelView()
    with _collected(faults):
        request = read_back(world, message)
    with _collected(faults):
        if kind is SubmitKind.TASK:
            parse_task(config)
        else:
            catalogue = read_knowledge(world.objects, world.settings).catalogue
            seen = _check_forecast(parse_config(config, catalogue), request, world)
    if faults:
        raise Rejected(faults)
    return seen


def _check_forecast(config: RunConfig, request: SubmitRequest | None, world: World) -> PanelView:
    entrypoint = world.settings.entrypoint
    if request is not None:
        entrypoint = request.entrypoint or entrypoint
        reader = FieldReader()
        check_served(reader, config, request, select_models(reader, config, request))
        reader.finish()
    return check_panel(config.data, world.objects, entrypoint)


@contextmanager
def _collected(faults: list[Fault]) -> Iterator[None]:
    """Keep the faults of a `Rejected` and go on, so that all are told at once."""
    try:
        yield
    except Rejected as rejected:
        faults.extend(rejected.faults)

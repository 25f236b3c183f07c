"""Builders: a config, a message and settings that are right; a test says only what it changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from runtender.errors import Rejected
from runtender.forecast.config import RunConfig, parse_config
from runtender.forecast.run import Places, plan_run
from runtender.model import Placement, SubmitRequest, WalkPolicy
from runtender.settings import Settings

ConfigJson = Callable[..., dict[str, Any]]


@pytest.fixture
def config_json() -> ConfigJson:
    """A run config as its sender writes it; keyword arguments replace top-level fields."""

    def build(**fields: Any) -> dict[str, Any]:
        return {
            "run_name": "Flights",
            "data": {"source_table": "gs://panels/flights.csv"},
            "models": ["theta", "autoets"],
            "python_runtime": "gce",
            **fields,
        }

    return build


@pytest.fixture
def a_config(config_json: ConfigJson) -> Callable[..., RunConfig]:
    """A validated run config; keyword arguments replace top-level fields."""
    return lambda **fields: parse_config(config_json(**fields))


@pytest.fixture
def a_request() -> Callable[..., SubmitRequest]:
    """A submit message that brings all it needs."""

    def build(**fields: Any) -> SubmitRequest:
        staged = {
            "image": "europe-docker.pkg.dev/p/r/worker:1",
            "package_uri": "gs://code/runs/worker-12ab34cd.zip",
        }
        return SubmitRequest(
            **{"request_id": "r-1", "published_at": datetime(2025, 3, 1, tzinfo=UTC), **staged, **fields}
        )

    return build


@pytest.fixture
def a_plane() -> Callable[..., Settings]:
    """Settings of a plane that can make VMs; arguments are further variables."""

    def build(**variables: str) -> Settings:
        base: Mapping[str, str] = {
            "SF_PROJECT_ID": "p",
            "SF_CODE_BUCKET": "code",
            "SF_WAREHOUSE_URI": "gs://wh/warehouse",
            "SF_COMPUTE_SA": "worker@p.iam.gserviceaccount.com",
            "SF_SUBNETWORK_URI": "projects/p/regions/us-central1/subnetworks/s",
        }
        return Settings.from_env({**base, **variables})

    return build


@pytest.fixture
def zones() -> tuple[Placement, ...]:
    """Two placements of the home region."""
    subnet = "projects/p/regions/us-central1/subnetworks/s"
    return tuple(
        Placement(region="us-central1", zone=f"us-central1-{letter}", subnetwork_uri=subnet)
        for letter in "ab"
    )


@pytest.fixture
def plan(a_config, a_request, a_plane, zones):
    """Plan a run; `request` and `variables` change the message and the plane, other arguments the config."""

    def build(
        *,
        request=None,
        variables=None,
        walk=None,
        attempts=None,
        knowledge=None,
        clusters=None,
        only_served=True,
        **config,
    ):
        return plan_run(
            a_config(**config),
            a_request(**(request or {})),
            a_plane(**(variables or {})),
            Places(
                zones=zones,
                walk=walk or WalkPolicy(),
                cluster_zones=zones,
                clusters=clusters or {},
                only_served=only_served,
            ),
            attempts=attempts,
            knowledge=knowledge,
        )

    return build


@pytest.fixture
def faults(plan):
    """The faults of a run that is refused, by field."""

    def build(**arguments):
        with pytest.raises(Rejected) as rejected:
            plan(**arguments)
        return {fault.field: fault for fault in rejected.value.faults}

    return build

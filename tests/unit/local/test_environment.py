"""What the processes of the local cloud find in their environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runtender.capacity.candidates import parse_catalogue, zonal_candidates
from runtender.capacity.catalogue import catalogue_faults
from runtender.errors import Rejected
from runtender.local.environment import (
    CODE_BUCKET,
    PLACES_OBJECT,
    Addresses,
    checked_scale,
    clean_environment,
    places,
    plane_environment,
    plane_settings,
)
from runtender.settings import Settings

AT = Addresses(
    storage="http://s",
    compute="http://c",
    container="http://k",
    functions="http://f",
    cluster_roots=Path("roots.pem"),
)


def test_the_planes_settings_are_complete_and_scaled() -> None:
    settings = Settings.from_env(plane_settings(20))
    assert settings.backend == "embedded"
    assert settings.time_scale == 20
    assert settings.compute_sa
    assert settings.subnetwork_uri


def test_a_scenario_may_change_the_planes_settings() -> None:
    settings = Settings.from_env(plane_settings(1, {"SF_GUEST_SELF_DELETE": "false"}))
    assert not settings.guest_self_delete
    assert settings.project == "local"


def test_a_cloud_may_have_another_backend_and_project() -> None:
    settings = Settings.from_env(plane_settings(1, backend="google", project="local-1"))
    assert (settings.backend, settings.project) == ("google", "local-1")
    assert settings.compute_sa == "worker@local-1.iam.gserviceaccount.com"
    assert settings.subnetwork_uri.startswith("projects/local-1/regions/")


def test_a_plane_with_other_regions_finds_a_catalogue_that_it_takes() -> None:
    settings = Settings.from_env(plane_settings(1, regions=["us-east1"], project="local-1"))
    assert settings.compute_fallback == f"gs://{CODE_BUCKET}/{PLACES_OBJECT}"
    catalogue = places("local-1", ["us-east1"])
    assert catalogue_faults(catalogue, json.dumps(catalogue)) == ()
    found = zonal_candidates(settings.region, settings.subnetwork_uri, parse_catalogue(catalogue))
    assert [place.zone for place in found if place.region == "us-east1"] == [
        "us-east1-b",
        "us-east1-c",
        "us-east1-d",
    ]
    at_home = {place.subnetwork_uri for place in found if place.region == settings.region}
    assert at_home == {settings.subnetwork_uri}


def test_without_other_regions_the_plane_stays_at_home() -> None:
    assert Settings.from_env(plane_settings(1)).compute_fallback == ""


def test_a_client_is_told_where_every_service_is() -> None:
    backend = {"SF_STORE_PATH": "/data/store.sqlite", "SF_TOPICS_ENDPOINT": "http://t"}
    environment = plane_environment(plane_settings(1), AT, backend)
    assert environment["STORAGE_EMULATOR_HOST"] == "http://s"
    assert environment["SF_TOPICS_ENDPOINT"] == "http://t"
    assert environment["SF_COMPUTE_ENDPOINT"] == "http://c/compute/v1"
    assert environment["SF_STORE_PATH"] == "/data/store.sqlite"


@pytest.mark.parametrize(
    "name",
    ["SF_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS", "https_proxy", "NO_PROXY", "PUBSUB_EMULATOR_HOST"],
)
def test_nothing_of_the_callers_leads_out_of_the_local_cloud(name: str) -> None:
    assert clean_environment({name: "elsewhere", "PATH": "/bin", "LANG": "C"}) == {
        "PATH": "/bin",
        "LANG": "C",
    }


@pytest.mark.parametrize("scale", [0, -1, 1e-9, 1e9, float("inf"), float("nan")])
def test_time_passes_forwards_and_not_all_at_once(scale: float) -> None:
    with pytest.raises(Rejected, match=r"is not a number from 0\.01 to 10000"):
        checked_scale(scale)

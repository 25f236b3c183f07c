"""Where capacity is looked for, and in which order."""

from __future__ import annotations

import pytest

from runtender.capacity.candidates import (
    Region,
    built_in_regions,
    candidates,
    parse_catalogue,
    zonal_candidates,
)
from runtender.model import Placement

HOME = Region(name="us-central1", zones=("us-central1-a", "us-central1-b"))
EAST = Region(name="us-east1", zones=("us-east1-b", "us-east1-c"), subnetwork_uri="east")


def labels(placements):
    return [f"{placement.label} {placement.subnetwork_uri}" for placement in placements]


@pytest.mark.parametrize(
    ("catalogue", "expected"),
    [
        pytest.param(
            (HOME,),
            ["us-central1/auto home", "us-central1/us-central1-a home", "us-central1/us-central1-b home"],
            id="acceptance-H1",
        ),
        pytest.param(
            (EAST, HOME),
            [
                "us-central1/auto home",
                "us-central1/us-central1-a home",
                "us-central1/us-central1-b home",
                "us-east1/us-east1-b east",
                "us-east1/us-east1-c east",
            ],
            id="acceptance-H2",
        ),
        pytest.param(
            (HOME, HOME),
            ["us-central1/auto home", "us-central1/us-central1-a home", "us-central1/us-central1-b home"],
            id="acceptance-H4 a region twice",
        ),
        pytest.param(
            (Region(name="us-east1", zones=("us-east1-b",) * 2, subnetwork_uri="east"),),
            [
                *[f"us-central1/{zone} home" for zone in ("auto", *(f"us-central1-{c}" for c in "abcf"))],
                "us-east1/us-east1-b east",
            ],
            id="acceptance-H4 a zone twice",
        ),
        pytest.param(
            (HOME, Region(name="us-west1", zones=("us-west1-a",))),
            ["us-central1/auto home", "us-central1/us-central1-a home", "us-central1/us-central1-b home"],
            id="a region without a subnet of its own is left out",
        ),
    ],
)
def test_home_comes_first_and_then_regions_with_their_own_subnet(catalogue, expected):
    assert labels(candidates("us-central1", "home", catalogue)) == expected


def test_the_built_in_map_names_the_zones_there_are():
    zones = {region.name: len(region.zones) for region in built_in_regions()}
    assert zones == {
        "us-central1": 4, "us-east1": 3, "us-east4": 3, "us-east5": 3, "us-south1": 3,
        "us-west1": 3, "us-west2": 3, "us-west3": 3, "us-west4": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(None, id="acceptance-H3 nothing"),
        pytest.param([], id="acceptance-H3 a list"),
        pytest.param({}, id="acceptance-H3 no regions"),
        pytest.param({"regions": {}}, id="acceptance-H3 empty"),
        pytest.param({"regions": ["us-east1"]}, id="regions in a list"),
        pytest.param({"regions": {"us-east1": None}}, id="a region that is nothing"),
        pytest.param({"regions": {"us-east1": {"zones": "b"}}}, id="zones in one text"),
        pytest.param({"regions": {"us-east1": {"zones": [1]}}}, id="a zone that is a number"),
        pytest.param({"regions": {"us-east1": {"subnetwork_uri": 5}}}, id="a subnet that is a number"),
    ],
)
def test_an_unreadable_catalogue_says_so(raw):
    with pytest.raises(ValueError, match="catalogue"):
        parse_catalogue(raw)


def test_a_catalogue_is_read_in_its_order_and_completed_from_the_map():
    raw = {
        "regions": {
            "us-west1": {"subnetwork_uri": "west"},
            "us-east1": {"zones": ["b", "us-east1-d"], "subnetwork_uri": None},
        }
    }
    assert parse_catalogue(raw) == (
        Region(name="us-west1", zones=("us-west1-a", "us-west1-b", "us-west1-c"), subnetwork_uri="west"),
        Region(name="us-east1", zones=("us-east1-b", "us-east1-d")),
    )


@pytest.mark.parametrize("zones", [pytest.param(["a", "b", "c", "f"], id="acceptance-H5")])
def test_a_vm_is_tried_only_in_named_zones(zones):
    found = zonal_candidates("us-central1", "home", built_in_regions())
    assert [placement.zone for placement in found] == [f"us-central1-{letter}" for letter in zones]


@pytest.mark.parametrize("zone", [pytest.param("europe-west4-a", id="acceptance-H6")])
def test_a_home_region_nobody_knows_is_tried_in_its_first_zone(zone):
    home = Placement(region="europe-west4", zone=zone, subnetwork_uri="home")
    assert zonal_candidates("europe-west4", "home", built_in_regions()) == (home,)
    assert zonal_candidates("europe-west4", "home", (EAST,))[0] == home

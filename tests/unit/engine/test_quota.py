"""Quota read for plans, and what it means for them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runtender.engine.quota import quota_document, read_quota
from runtender.model import JobPlan, Machine, Placement, WalkPolicy
from runtender.observed import Reading

HERE, THERE, FAR = (Placement(region=region, zone=f"{region}-a") for region in ("us-x1", "us-x2", "us-x3"))
OTHER = Machine(
    machine_type="n2d-standard-8", vcpus=8, disk_type="pd-balanced", on_host_maintenance="MIGRATE"
)
FULL, ROOM = {"N2_CPUS": Reading(limit=24, usage=24)}, {"N2_CPUS": Reading(limit=24, usage=8)}


class Meters:
    """A quota port: the readings of some regions; nothing can be read of the others."""

    def __init__(self, **regions):
        self.regions = {name.replace("_", "-"): readings for name, readings in regions.items()}
        self.asked = []

    def read(self, region, meters):
        self.asked.append((region, [meter.name for meter in meters]))
        return self.regions.get(region, {})


def a_plan(*placements, **changes):
    defaults = {
        "runtime": "gce",
        "name": "sf-a",
        "machine_type": "n2-standard-8",
        "vcpus": 8,
        "image_uri": "i",
        "status_bucket": "b",
        "placements": placements,
        "capacity_wait": timedelta(1),
        "run_limit": timedelta(1),
        "max_run_duration": timedelta(1),
    }
    return JobPlan(**{**defaults, **changes})


def test_a_region_is_read_once_for_all_plans_and_machines():
    meters = Meters(us_x1=ROOM, us_x2=ROOM)
    plans = [a_plan(HERE, THERE), a_plan(HERE, machine_type="c3-standard-8")]
    assert read_quota(meters, plans) == {"us-x1": ROOM, "us-x2": ROOM}
    assert [region for region, _ in meters.asked] == ["us-x1", "us-x2"]
    assert {"N2_CPUS", "C3_CPUS"} <= set(meters.asked[0][1])


def test_nobody_waits_for_a_time_out_per_region():
    meters = Meters(us_x1=ROOM, us_x3=ROOM)
    assert read_quota(meters, [a_plan(HERE, THERE, FAR)]) == {"us-x1": ROOM}
    assert [region for region, _ in meters.asked] == ["us-x1", "us-x2"]


@pytest.mark.parametrize(
    ("quota", "room"),
    [
        pytest.param({"us-x1": ROOM, "us-x2": ROOM}, "ENOUGH", id="everywhere"),
        pytest.param({"us-x1": FULL, "us-x2": ROOM}, "SOME", id="in one of two"),
        pytest.param({"us-x1": FULL}, "SOME", id="the other is not known"),
        pytest.param({"us-x1": FULL, "us-x2": FULL}, "NONE", id="nowhere"),
        pytest.param({}, "UNKNOWN", id="nothing read"),
        pytest.param({"us-x1": {}}, "UNKNOWN", id="no meters read"),
    ],
)
def test_what_the_regions_say_together(quota, room):
    assert quota_document(a_plan(HERE, THERE), quota)["room"] == room


def test_another_machine_in_the_same_region_is_weighed_by_its_own_meters():
    plan = a_plan(HERE, replace(HERE, machine=OTHER))
    quota = {"us-x1": {**FULL, "N2D_CPUS": Reading(limit=24, usage=0)}}
    document = quota_document(plan, quota)
    assert document["room"] == "SOME"
    assert [(one["machine"], one["blocked"]) for one in document["regions"]] == [
        ("", True),
        ("n2d-standard-8", False),
    ]


def test_whether_the_plane_looks_and_waits_is_told():
    plan = a_plan(HERE, walk=WalkPolicy(preflight=False, wait_for_quota=True))
    document = quota_document(plan, {})
    assert (document["asked"], document["waits"]) == (False, True)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        pytest.param(10.0, ["on 2 of 4 machines the work takes about 50m instead of 25m"], id="measured"),
        pytest.param(None, [], id="never measured"),
    ],
)
def test_a_clamped_pool_is_told_how_much_longer_it_takes(seconds, told):
    plan = a_plan(
        HERE,
        worker_count=4,
        gpu_type="L4",
        accelerator_count=1,
        resource_plan={"n_cells": 1200, "slots_per_unit": 2, "seconds_per_cell": seconds},
    )
    (region,) = quota_document(plan, {"us-x1": {"NVIDIA_L4_GPUS": Reading(limit=2, usage=0)}})["regions"]
    assert region["clamped"]
    assert region["lines"][0].startswith("quota [CLAMPED] NVIDIA_L4_GPUS in us-x1: 4 asked for at most")
    assert [line for line in region["lines"] if line.startswith("on ")] == told

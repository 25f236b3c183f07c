"""What room a quota leaves, and what is said about it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.capacity.demands import Demand, Sharing, demands_of
from runtender.capacity.quota import Status, judge, render, span_text, wall_estimate, weigh
from runtender.model import JobPlan, Placement
from runtender.observed import Reading
from runtender.ports import Meter

L4 = Meter(name="NVIDIA_L4_GPUS", metric="compute.googleapis.com/nvidia_l4_gpus")
POOL, SHARED = Sharing.POOL, Sharing.SHARED


def a_demand(per_unit=1, units=(1, 1), sharing=POOL, **changes):
    least, most = units
    return Demand(
        meter=L4, unit="GPUs", per_unit=per_unit, min_units=least, max_units=most, sharing=sharing, **changes
    )


def against(demand, limit, usage=None):
    return weigh(demand, "us-x1", {L4.name: Reading(limit=limit, usage=usage)})


def a_plan(machine_type="n2-standard-8", vcpus=8, **changes):
    return JobPlan(
        **{
            "runtime": "gce",
            "name": "sf-a",
            "machine_type": machine_type,
            "vcpus": vcpus,
            "image_uri": "i",
            "status_bucket": "b",
            "placements": (Placement(region="us-x1", zone="us-x1-a"),),
            "capacity_wait": timedelta(1),
            "run_limit": timedelta(1),
            "max_run_duration": timedelta(1),
            **changes,
        }
    )


def gpu_plan(**changes):
    gpu = {"hardware": "gpu", "gpu_type": "L4", "accelerator_count": 2}
    return a_plan("g2-standard-24", 24, **{**gpu, **changes})


@pytest.mark.parametrize(
    ("demand", "limit", "status", "bounds"),
    [
        pytest.param(a_demand(units=(2, 12)), None, "UNKNOWN", (2, 12), id="acceptance-G5"),
        pytest.param(a_demand(), 0, "BLOCKED", (1, 1), id="acceptance-G6"),
        pytest.param(a_demand(per_unit=4), 2, "BLOCKED", (1, 1), id="acceptance-G7"),
        pytest.param(a_demand(units=(1, 12)), 12, "OK", (1, 12), id="acceptance-G8"),
        pytest.param(a_demand(units=(1, 4)), 400, "OK", (1, 4), id="acceptance-G9"),
        pytest.param(a_demand(units=(1, 12)), 2, "CLAMPED", (1, 2), id="acceptance-G10"),
        pytest.param(a_demand(per_unit=0, fixed=224), 2200, "OK", (1, 1), id="acceptance-G12 enough"),
        pytest.param(a_demand(per_unit=0, fixed=224), 100, "BLOCKED", (1, 1), id="acceptance-G12 short"),
        pytest.param(a_demand(per_unit=2, units=(1, 5)), 7, "CLAMPED", (1, 3), id="acceptance-G13"),
        pytest.param(a_demand(units=(4, 9)), 3, "CLAMPED", (2, 3), id="bounds that met are moved apart"),
        pytest.param(a_demand(units=(4, 9)), 1, "CLAMPED", (1, 1), id="one unit cannot be less"),
        pytest.param(a_demand(units=(4, 9), sharing=SHARED), 3, "BLOCKED", (4, 9), id="less than the least"),
    ],
)
def test_a_limit_leaves_room_for_so_many_units(demand, limit, status, bounds):
    outcome = against(demand, limit)
    assert (outcome.status, (outcome.min_units, outcome.max_units)) == (status, bounds)


@pytest.mark.parametrize((), [pytest.param(id="acceptance-G11")])
def test_a_shared_meter_is_told_of_and_not_clamped():
    outcome = against(a_demand(per_unit=8, units=(1, 20), sharing=SHARED), 80)
    assert (outcome.status, outcome.advisory, outcome.max_units) == (Status.OK, True, 20)
    assert "not clamped" in outcome.detail


@pytest.mark.parametrize(
    ("usage", "status"),
    [
        pytest.param(None, "OK", id="nobody knows what is in use"),
        pytest.param(6, "OK", id="just enough left"),
        pytest.param(7, "BLOCKED", id="too little left"),
        pytest.param(9, "BLOCKED", id="more in use than allowed"),
    ],
)
def test_what_is_in_use_is_not_there(usage, status):
    assert against(a_demand(per_unit=2), 8, usage).status == status


def test_a_single_machine_never_scales_and_a_clamped_pool_of_one_cannot():
    assert against(a_demand(), 4).autoscale_viable
    assert not against(a_demand(units=(1, 4)), 1).autoscale_viable


@pytest.mark.parametrize(
    ("readings", "status", "meter"),
    [
        pytest.param({"P": Reading(limit=4), L4.name: Reading(limit=0)}, "OK", "P", id="granted"),
        pytest.param({"P": Reading(limit=0), L4.name: Reading(limit=4)}, "OK", L4.name, id="not granted"),
        pytest.param({"P": Reading(limit=0), L4.name: Reading(limit=0)}, "BLOCKED", L4.name, id="neither"),
        pytest.param({L4.name: Reading(limit=0)}, "UNKNOWN", "P", id="not known"),
    ],
)
def test_spot_is_paid_from_its_own_meter_where_the_project_has_one(readings, status, meter):
    demand = Demand(meter=Meter(name="P", metric="m/p"), standard=L4, unit="GPUs", per_unit=1)
    outcome = weigh(demand, "us-x1", readings)
    assert (outcome.status, outcome.meter) == (status, meter)


@pytest.mark.parametrize(
    ("plan", "amounts"),
    [
        pytest.param(
            a_plan(),
            {"N2_CPUS": 8, "CPUS_ALL_REGIONS": 8, "SSD_TOTAL_GB": 100, "INSTANCES": 1},
            id="a series with a meter of its own",
        ),
        pytest.param(a_plan("n1-standard-4", 4), {"CPUS": 4, "CPUS_ALL_REGIONS": 4}, id="the common meter"),
        pytest.param(a_plan("custom-6-8192", 6), {"CPUS": 6}, id="a custom machine of the first series"),
        pytest.param(a_plan("n4-standard-8", 8), {"N4_CPUS": 8}, id="a newer family"),
        pytest.param(a_plan("what", 0), {"CPUS": None, "WHAT_CPUS": None}, id="a size nobody knows"),
        pytest.param(
            a_plan(spot=True), {"PREEMPTIBLE_CPUS": 8, "N2_CPUS": None}, id="Spot machines have their meter"
        ),
        pytest.param(
            gpu_plan(),
            {"NVIDIA_L4_GPUS": 2, "GPUS_ALL_REGIONS": 2, "CPUS": 24},
            id="GPUs, here and everywhere",
        ),
        pytest.param(gpu_plan(spot=True), {"PREEMPTIBLE_NVIDIA_L4_GPUS": 2}, id="Spot GPUs"),
        pytest.param(a_plan(disk_type="pd-standard"), {"DISKS_TOTAL_GB": 100}, id="a disk that turns"),
        pytest.param(a_plan(disk_type="hyperdisk-balanced"), {"HDB_TOTAL_GB": 100}, id="a hyperdisk"),
        pytest.param(a_plan(worker_count=3), {"N2_CPUS": 24, "INSTANCES": 3}, id="several machines"),
    ],
)
def test_a_plan_asks_of_the_right_meters(plan, amounts):
    asked = {demand.meter.name: demand.amount(demand.max_units) for demand in demands_of(plan)}
    assert {name: asked.get(name) for name in amounts} == amounts


def test_a_newer_family_is_a_dimension_of_one_metric():
    (cpus, *_) = demands_of(a_plan("n4-standard-8", 8))
    assert cpus.meter == Meter(
        name="N4_CPUS",
        metric="compute.googleapis.com/cpus_per_vm_family",
        dimension=("vm_family", "N4"),
    )
    (gpus, *_) = demands_of(gpu_plan(gpu_type="H100"))
    assert (gpus.meter.metric, gpus.meter.dimension) == (
        "compute.googleapis.com/gpus_per_gpu_family",
        ("gpu_family", "NVIDIA_H100"),
    )


@pytest.mark.parametrize("limit", [pytest.param(1, id="acceptance-G14")])
def test_two_gpus_do_not_fit_into_a_quota_of_one(limit):
    verdict = judge("us-x1", demands_of(gpu_plan()), {L4.name: Reading(limit=limit, usage=0)})
    assert verdict.blocked
    assert verdict.why_blocked == "NVIDIA_L4_GPUS in us-x1: 2 needed, 1 of 1 GPUs free"
    assert render(verdict)[0] == "quota [BLOCKED] NVIDIA_L4_GPUS in us-x1: 2 needed, 1 of 1 GPUs free"
    assert verdict.advice == ("ask for 2 or more of NVIDIA_L4_GPUS, or use another region or machine",)


def test_a_limit_that_others_use_up_is_worth_waiting_for():
    verdict = judge("us-x1", demands_of(gpu_plan()), {L4.name: Reading(limit=4, usage=3)})
    assert verdict.advice == ("wait until less of NVIDIA_L4_GPUS is in use, or use another region",)


def test_a_quota_over_all_regions_says_so():
    verdict = judge("us-x1", demands_of(gpu_plan()), {"GPUS_ALL_REGIONS": Reading(limit=0, usage=0)})
    assert verdict.why_blocked == "GPUS_ALL_REGIONS over all regions: 2 needed, 0 of 0 GPUs free"


def test_nothing_known_blocks_nothing_and_is_not_worth_telling():
    verdict = judge("us-x1", demands_of(gpu_plan()), {})
    assert (verdict.blocked, verdict.clamped, verdict.worth_telling) == (False, False, False)
    assert {outcome.status for outcome in verdict.outcomes} == {Status.UNKNOWN}


def test_a_verdict_reads_as_the_specified_json():
    verdict = judge("us-x1", [a_demand(units=(1, 5), per_unit=2)], {L4.name: Reading(limit=7, usage=0)})
    assert verdict.to_json() == {
        "region": "us-x1",
        "blocked": False,
        "clamped": True,
        "outcomes": [
            {
                "status": "CLAMPED",
                "advisory": False,
                "pool": "pool",
                "region": "us-x1",
                "metric": "compute.googleapis.com/nvidia_l4_gpus",
                "limit": 7,
                "usage": 0,
                "asked_min_units": 1,
                "asked_max_units": 5,
                "min_units": 1,
                "max_units": 3,
                "autoscale_viable": True,
                "detail": "NVIDIA_L4_GPUS in us-x1: 10 asked for at most, 7 of 7 GPUs free: enough for 3 of 5 units",
            }
        ],
        "advice": ["ask for 10 or more of NVIDIA_L4_GPUS, or use another region or machine"],
    }
    assert verdict.max_units == 3


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(seconds, text, id=f"acceptance-G16 {text}")
        for seconds, text in [(0, "0s"), (45, "45s"), (90, "2m"), (3600, "1h00m"), (4512, "1h15m")]
    ],
)
def test_a_span_is_said_as_a_person_says_it(seconds, text):
    assert span_text(seconds) == text


@pytest.mark.parametrize(
    ("cell_s", "units", "seconds"),
    [
        pytest.param(10, 6, 1000, id="acceptance-G17 six units"),
        pytest.param(10, 12, 500, id="acceptance-G17 twelve units"),
        pytest.param(None, 6, None, id="acceptance-G17 never measured"),
    ],
)
def test_the_wall_time_of_all_cells(cell_s, units, seconds):
    assert wall_estimate(1200, cell_s, slots=2, units=units) == seconds

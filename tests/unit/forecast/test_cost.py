"""What a run costs: the bound, the expectation, the cap, and that nothing is guessed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import pytest

from runtender.errors import Rejected
from runtender.forecast.cost import estimate, total
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.machines import SHIPPED
from runtender.forecast.prices import parse_prices, shipped_prices
from runtender.forecast.profiles import Profile
from runtender.model import Limits, Placement

ROW = {"source": "a test", "read_on": "2026-01-02"}
ONE_DOLLAR = {"usd": 1, **ROW}


def prices(**tables):
    return parse_prices({"currency": "USD", "regions": {"us-central1": tables}})


def cost_of(plan, of=None, **arguments):
    planned = plan(**arguments)
    (family,) = planned
    return estimate(planned[family], shipped_prices() if of is None else of, SHIPPED)


def test_a_machine_costs_its_cores_its_memory_and_its_disk(plan):
    found = cost_of(plan)
    # n2-standard-8 and 100 GiB of pd-balanced
    assert found.hourly_usd == pytest.approx(8 * 0.031611 + 32 * 0.004237 + 100 * 0.10 / 730, abs=1e-4)
    assert (found.machines, found.unknown) == (1, ())


def test_it_costs_at_most_what_the_machine_may_live(plan):
    found = cost_of(plan, request={"limits": Limits(run=None)})
    hours = (1800 + 86400 + 600) / 3600
    assert found.at_most_usd == pytest.approx(found.hourly_usd * hours, abs=0.01)


def test_a_faster_world_costs_what_the_real_one_would(plan):
    real = plan()["statistical"]
    fast = plan(variables={"SF_TIME_SCALE": "20"})["statistical"]
    assert estimate(fast, shipped_prices(), SHIPPED, time_scale=20).at_most_usd == pytest.approx(
        estimate(real, shipped_prices(), SHIPPED).at_most_usd, rel=0.001
    )


def test_an_expectation_needs_a_measure(plan):
    assert cost_of(plan).expected_usd is None
    measured = Knowledge(profiles={"statistical": Profile(seconds_per_cell=12.6, n_cells=9)})
    found = cost_of(plan, knowledge=measured)
    # 2000 cells of 12.6 s, 7 at once: an hour
    assert found.expected_usd == pytest.approx(found.hourly_usd, abs=1e-3)


@pytest.mark.parametrize(
    ("request_fields", "config", "usd"),
    [
        pytest.param(
            {}, {"compute": {"use_gpu": True, "gpu_type": "L4"}}, 0.91, id="a GPU in the machine's price"
        ),
        pytest.param(
            {},
            {"compute": {"use_gpu": True, "gpu_type": "T4"}},
            8 * 0.031611 + 30 * 0.004237 + 0.35,
            id="a GPU beside it",
        ),
        pytest.param(
            {},
            {"compute": {"use_gpu": True, "gpu_type": "H100_80GB", "accelerator_count": 8}},
            84.94,
            id="H100",
        ),
    ],
)
def test_gpus_are_paid_for(plan, request_fields, config, usd):
    found = cost_of(plan, models=["tide"], request=request_fields, **config)
    assert found.hourly_usd == pytest.approx(usd + 100 * 0.10 / 730, abs=1e-4)


def test_spot_is_bounded_by_the_price_on_demand_and_says_so(plan):
    spot = cost_of(plan, request={"overrides": {"statistical": {"spot": True}}})
    assert spot.hourly_usd == cost_of(plan).hourly_usd
    assert spot.notes == ("Spot: the on-demand price is the bound",)


@pytest.mark.parametrize(
    ("override", "unknown"),
    [
        pytest.param(
            {"machine_type": "c4-standard-8"}, ("hyperdisk-balanced disk in us-central1",), id="disk"
        ),
        pytest.param(
            {"machine_type": "z9-standard-8"},
            ("z9 vCPUs in us-central1", "z9 memory in us-central1"),
            id="series",
        ),
        pytest.param(
            {"machine_type": "n2-custom-8-16384"}, ("n2-custom-8-16384 in us-central1",), id="unknown size"
        ),
    ],
)
def test_a_price_nobody_knows_is_named(plan, override, unknown):
    found = cost_of(plan, request={"overrides": {"statistical": override}})
    assert (found.hourly_usd, found.at_most_usd, found.unknown) == (None, None, unknown)


def test_the_dearest_region_of_the_placements_counts_and_an_unknown_one_is_said(plan):
    planned = plan()["statistical"]
    free = {"usd": 0, **ROW}
    cheap = {
        "vcpu_hour": {"n2": ONE_DOLLAR},
        "gib_hour": {"n2": free},
        "disk_gib_month": {"pd-balanced": free},
    }
    dear = {**cheap, "vcpu_hour": {"n2": {"usd": 2, **ROW}}}
    both = parse_prices({"currency": "USD", "regions": {"us-central1": cheap, "us-east1": dear}})
    away = replace(planned, placements=(*planned.placements, Placement(region="us-east1", zone="us-east1-b")))
    assert estimate(away, both, SHIPPED).hourly_usd == 16
    assert estimate(away, prices(**cheap), SHIPPED).unknown == ("anything in us-east1",)


@pytest.mark.parametrize(
    ("cap", "is_kept"),
    [pytest.param(1000.0, True, id="enough"), pytest.param(1.0, False, id="too little")],
)
def test_a_cap_is_kept_before_anything_is_made(plan, cap, is_kept):
    request = {"limits": Limits(cost_usd=cap)}
    if is_kept:
        assert plan(request=request)
        return
    with pytest.raises(
        Rejected, match=r"limits.cost_usd: CostCap: the run may cost \$\d+\.\d\d, the cap is \$1.00"
    ):
        plan(request=request)


def test_a_cap_counts_all_families_together(plan):
    each = cost_of(plan, models=["theta"]).at_most_usd
    request = {"limits": Limits(cost_usd=each * 1.5)}
    assert plan(models=["theta"], request=request)
    with pytest.raises(Rejected, match="CostCap"):
        plan(models=["theta", "xgboost"], request=request)


def test_a_cap_beside_an_unknown_price_is_refused(plan):
    request = {
        "limits": Limits(cost_usd=1e6),
        "overrides": {"statistical": {"machine_type": "n4-standard-8"}},
    }
    with pytest.raises(Rejected, match="CostCap: the price of statistical: hyperdisk-balanced disk"):
        plan(request=request)


def test_a_run_costs_the_sum_of_its_families_or_nobody_knows(plan):
    known = {
        family: estimate(one, shipped_prices(), SHIPPED)
        for family, one in plan(models=["theta", "xgboost"]).items()
    }
    ml = known["ml"].at_most_usd or 0.0
    assert total(known)["at_most_usd"] == pytest.approx(2 * ml, abs=1e-3)
    assert total({**known, "ml": replace(known["ml"], at_most_usd=None)})["at_most_usd"] is None
    json.dumps(total(known))


def test_every_shipped_price_says_where_it_comes_from():
    for region in shipped_prices().values():
        for table in ("vcpu_hour", "gib_hour", "machine_hour", "accelerator_hour", "disk_gib_month"):
            for price in getattr(region, table).values():
                assert price.source
                assert date.fromisoformat(price.read_on) < date(2100, 1, 1)


def test_a_users_table_takes_the_place_of_the_shipped_one(plan):
    mine = prices(
        vcpu_hour={"n2": ONE_DOLLAR}, gib_hour={"n2": ONE_DOLLAR}, disk_gib_month={"pd-balanced": ONE_DOLLAR}
    )
    assert cost_of(plan, of=mine).hourly_usd == pytest.approx(40 + 100 / 730, abs=1e-4)


def test_all_that_is_wrong_in_a_table_is_told_at_once():
    raw = {"currency": "EUR", "regions": {"r": {"vcpu_hour": {"n2": {"usd": -1, **ROW}}, "ssd": {}}}}
    with pytest.raises(Rejected) as rejected:
        parse_prices(raw)
    assert {fault.field for fault in rejected.value.faults} == {
        "currency",
        "regions.r.ssd",
        "regions.r.vcpu_hour.n2.usd",
    }

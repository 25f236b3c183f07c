"""The user's own tables: read where a setting names them, and told by that setting where they are wrong."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from runtender.engine.tables import read_knowledge
from runtender.errors import Rejected
from runtender.ports import Create

N9 = {"families": {"n9": {"boot_disks": ["hyperdisk-balanced"], "gib_per_vcpu": {"standard": 5}}}}


def settings(world, **changes):
    return replace(world.plane.settings, **changes)


def test_a_series_from_the_users_file_is_planned_with(world):
    world.objects.put("code", "machines.json", json.dumps(N9).encode())
    world.plane = replace(world.plane, settings=settings(world, machines="gs://code/machines.json"))
    receipt = world.submit(overrides={"statistical": {"machine_type": "n9-standard-4"}})
    plan = world.job(receipt)["plan"]
    assert (plan["machine_type"], plan["disk_type"]) == ("n9-standard-4", "hyperdisk-balanced")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "SF_MACHINES: gs://code/machines.json does not exist", id="missing"),
        pytest.param(b"[]", "SF_MACHINES: gs://code/machines.json is no JSON object", id="no object"),
        pytest.param(
            b'{"familys": {}}', 'SF_MACHINES: familys: "familys" is not a known field', id="a wrong name"
        ),
    ],
)
def test_a_file_that_is_wrong_is_named_by_its_setting(world, content, words):
    if content is not None:
        world.objects.put("code", "machines.json", content)
    with pytest.raises(Rejected, match=words):
        read_knowledge(world.objects, settings(world, machines="gs://code/machines.json"))


def test_what_an_earlier_run_measured_is_planned_with_where_it_is_named(world):
    document = {"memory_bytes": 8 * 1024**3, "seconds_per_cell": 2.0, "n_cells": 10, "run_id": "r-1"}
    world.store.commit([Create(path="profiles/r-1-statistical", data=document)])
    config = {**world.config, "compute": {"profile": {"source": "r-1"}}}
    sizing = world.job(world.submit(config=config))["plan"]["resource_plan"]
    assert (sizing["slot"]["measured"], sizing["slots_per_unit"]) == (["memory"], 2)
    assert sizing["profile"]["used"] == {"run_id": "r-1", "n_cells": 10}


def test_a_run_beyond_its_cost_cap_is_rejected_and_costs_no_machine(world):
    receipt = world.submit(limits={"cost_usd": 0.5})
    assert receipt.state == "rejected"
    assert "limits.cost_usd: CostCap" in receipt.errors[0]


def test_the_header_says_what_a_run_may_cost(world):
    cost = world.run(world.submit(limits={"cost_usd": 50}))["cost"]
    assert cost["at_most_usd"] == pytest.approx(cost["families"]["statistical"]["at_most_usd"])


def test_prices_of_ones_own_are_read_where_a_setting_names_them(world):
    world.objects.put("code", "prices.json", json.dumps({"currency": "USD", "regions": {}}).encode())
    knowledge = read_knowledge(world.objects, settings(world, prices="gs://code/prices.json"))
    assert knowledge.prices == {}

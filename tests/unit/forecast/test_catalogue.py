"""The tables of series and GPUs: where each row comes from, and how a user adds to them."""

from __future__ import annotations

from datetime import date

import pytest

from runtender.errors import Rejected
from runtender.forecast import machines
from runtender.forecast.catalogue import extended
from runtender.forecast.config import parse_config
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.machines import SHIPPED

A_SERIES = {
    "families": {
        "n9": {
            "boot_disks": ["hyperdisk-balanced"],
            "provisioning": ["STANDARD"],
            "gib_per_vcpu": {"standard": 5},
            "shapes": {"n9-tiny-1": {"vcpus": 1, "gib": 0.5, "boot_disks": ["pd-balanced"]}},
        },
        "x1": {"with_gpus": True},
    },
    "gpus": {"X1": {"accelerator": "nvidia-x1", "device_gib": 12.5, "machines": {"1": ["x1-big-1"]}}},
}


@pytest.fixture
def catalogue():
    return extended(SHIPPED, A_SERIES)


@pytest.mark.parametrize(
    "row",
    [*SHIPPED.families.values(), *SHIPPED.gpus.values()],
    ids=[*SHIPPED.families, *SHIPPED.gpus],
)
def test_a_shipped_row_says_where_it_comes_from_and_when_it_was_read(row):
    assert row.source
    assert date.fromisoformat(row.read_on) <= date(2100, 1, 1)


@pytest.mark.parametrize(
    ("machine", "disk"),
    [
        pytest.param("n2-standard-8", "pd-balanced", id="acceptance-C8 n2"),
        pytest.param("c3-standard-8", "pd-balanced", id="acceptance-C8 c3"),
        pytest.param("n4-standard-8", "hyperdisk-balanced", id="acceptance-C8 (the plane's own): n4"),
        pytest.param("c4-standard-8", "hyperdisk-balanced", id="acceptance-C8 (the plane's own): c4"),
        pytest.param("g4-standard-48", "hyperdisk-balanced", id="acceptance-C8 (the plane's own): g4"),
        pytest.param("a3-ultragpu-8g", "hyperdisk-balanced", id="acceptance-C8 (the plane's own): a3-ultra"),
        pytest.param("a3-highgpu-8g", "pd-balanced", id="the rest of a3"),
        pytest.param("z9-standard-8", "pd-balanced", id="a series nobody knows"),
    ],
)
def test_a_boot_disk_is_of_a_type_that_the_machine_takes(machine, disk):
    assert machines.disk_type(machine) == disk


def test_an_added_series_is_known_in_every_respect(catalogue):
    assert machines.shape_of("n9-standard-4", catalogue).memory_bytes == 20 * 1024**3
    assert machines.disk_type("n9-standard-4", catalogue) == "hyperdisk-balanced"
    assert machines.disk_type("n9-tiny-1", catalogue) == "pd-balanced"
    with pytest.raises(ValueError, match="not sold as Spot"):
        machines.check_provisioning("n9-tiny-1", spot=True, catalogue=catalogue)
    assert machines.device_bytes("X1", catalogue) == 12.5 * 1024**3


def test_the_shipped_rows_stay_beside_added_ones(catalogue):
    assert catalogue.families["n2"] == SHIPPED.families["n2"]
    assert "n9" not in SHIPPED.families


def test_an_added_gpu_can_be_planned_with(catalogue, config_json, plan):
    config = config_json(models=["tide"], compute={"use_gpu": True, "gpu_type": "X1"})
    assert parse_config(config, catalogue).compute.gpu_type == "X1"
    override = {"overrides": {"statistical": {"hardware": "gpu", "gpu_type": "x1"}}}
    planned = plan(request=override, knowledge=Knowledge(catalogue=catalogue))["statistical"]
    assert (planned.machine_type, planned.accelerator_type) == ("x1-big-1", "nvidia-x1")


def test_a_gpu_nobody_added_is_not_known(faults):
    found = faults(request={"overrides": {"statistical": {"hardware": "gpu", "gpu_type": "X1"}}})
    assert "overrides.statistical.gpu_type" in found


def test_spot_is_refused_where_it_is_not_sold(catalogue, plan):
    override = {"overrides": {"statistical": {"machine_type": "n9-standard-4", "spot": True}}}
    with pytest.raises(Rejected, match="not sold as Spot"):
        plan(request=override, knowledge=Knowledge(catalogue=catalogue))


def test_all_that_is_wrong_in_an_extension_is_told_at_once():
    raw = {
        "families": {
            "n9": {"boot_disks": [], "gib_per_vcpu": {"standard": 0}, "shapes": {"a": {"vcpus": 1}}}
        },
        "gpus": {"X": {"accelerator": "a", "device_gib": 1, "machines": {"none": ["m"], "1": "m"}}, "Y": 3},
        "disks": {},
    }
    with pytest.raises(Rejected) as rejected:
        extended(SHIPPED, raw)
    assert {fault.field for fault in rejected.value.faults} == {
        "disks",
        "families.n9.boot_disks",
        "families.n9.gib_per_vcpu.standard",
        "families.n9.shapes.a.gib",
        "gpus.X.machines.none",
        "gpus.X.machines.1",
        "gpus.Y",
    }

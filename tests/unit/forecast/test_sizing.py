"""Sizing: slots, density and fleets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtender.forecast.catalogue import GIB
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.sizing import (
    Slot,
    SlotWish,
    Unit,
    density_of,
    least_gpu_fraction,
    merge_slots,
    plan_pool,
    slot_of,
    thread_caps,
    unit_of,
)

N1_STANDARD_8 = unit_of("n1-standard-8", 0)


def assumed_slot(family, unit, *, gpu_type, gpu_fraction):
    return slot_of(family, SlotWish(unit=unit, gpu_type=gpu_type, gpu_fraction=gpu_fraction), Knowledge())


def a_pool(**fields):
    slot = Slot(family="statistical")
    defaults = {
        "runtime": "gce", "slots": [slot], "unit": N1_STANDARD_8, "n_cells": 100, "workers": 1,
        "target_cells_per_slot": 8,
    }  # fmt: skip
    return plan_pool(**{**defaults, **fields})


@pytest.mark.parametrize("family", [pytest.param("statistical", id="acceptance-H16")])
def test_a_slot_that_was_never_measured_is_one_core_of_unknown_memory(family):
    slot = assumed_slot(family, N1_STANDARD_8, gpu_type=None, gpu_fraction=None)
    assert slot == Slot(family=family, cores=1, memory_bytes=None, assumed=("cores", "memory"))
    assert slot.basis == "assumed"


@pytest.mark.parametrize("slots", [pytest.param(5, id="acceptance-H17")])
def test_memory_bounds_the_slots_of_a_machine(slots):
    density = density_of(Slot(family="ml", memory_bytes=4 * GIB), N1_STANDARD_8)
    assert (density.slots, density.axis) == (slots, "memory")
    assert density.note == "memory allows 5 cells at once, the other axes 7"


def test_one_core_is_left_to_the_system():
    density = density_of(Slot(family="ml"), N1_STANDARD_8)
    assert (density.slots, density.axis, density.note) == (7, "cores", None)


def test_a_cell_larger_than_the_machine_still_gets_a_slot():
    assert density_of(Slot(family="ml", cores=64, memory_bytes=500 * GIB), N1_STANDARD_8).slots == 1


def test_the_gpu_bounds_slots_that_need_a_share_of_it():
    unit = unit_of("g2-standard-24", 2)
    slot = assumed_slot("deep_learning", unit, gpu_type="L4", gpu_fraction=None)
    assert (slot.gpu_fraction, slot.device_bytes) == (0.5, 24 * GIB)
    assert (density_of(slot, unit).slots, density_of(slot, unit).axis) == (4, "device")


@pytest.mark.parametrize(
    ("machine", "count", "asked", "share"),
    [
        pytest.param("a2-highgpu-1g", 1, 0.01, 1 / 11, id="below what the cores can feed"),
        pytest.param("n1-standard-8", 1, 0.01, 0.1, id="never below a tenth"),
        pytest.param("n1-standard-8", 1, 1.0, 1.0, id="a whole device"),
        pytest.param("n1-standard-8", 1, 0.25, 0.25, id="as configured"),
    ],
)
def test_a_share_of_a_gpu_stays_within_reason(machine, count, asked, share):
    unit = unit_of(machine, count)
    assert assumed_slot("deep_learning", unit, gpu_type="T4", gpu_fraction=asked).gpu_fraction == share
    assert least_gpu_fraction(unit) <= 0.1


@pytest.mark.parametrize("parts", range(1, 200))
def test_an_nth_of_a_device_fits_n_times(parts):
    unit = Unit(machine_type="x", cores=1000, memory_bytes=None, accelerators=1)
    assert density_of(Slot(family="deep_learning", gpu_fraction=1 / parts), unit).slots == parts


def test_merging_takes_the_larger_need_on_each_axis():
    merged = merge_slots(
        [
            Slot(family="ml", cores=2, memory_bytes=GIB, assumed=("cores",)),
            Slot(
                family="deep_learning", cores=1, memory_bytes=3 * GIB, gpu_fraction=0.5, measured=("memory",)
            ),
        ]
    )
    assert merged == Slot(
        family="ml+deep_learning", cores=2, memory_bytes=3 * GIB, gpu_fraction=0.5,
        measured=("memory",), assumed=("cores",),
    )  # fmt: skip
    assert merged.basis == "measured"


@pytest.mark.parametrize("units", [pytest.param(0, id="acceptance-H18")])
def test_no_cells_need_no_machines(units):
    assert a_pool(n_cells=0).derived_units == units


def test_a_pool_grows_to_its_target_and_no_further_than_its_workers():
    pool = a_pool(n_cells=1000, workers=3)
    assert (pool.derived_units, pool.saturating_units) == (3, 143)


def test_a_pool_document_says_what_was_decided_and_why():
    assert a_pool(workers=2, n_cells=50).to_json() == {
        "runtime": "gce",
        "family": "statistical",
        "n_cells": 50,
        "slot": {
            "family": "statistical", "basis": "assumed", "cores": 1, "memory_bytes": None, "gpu_fraction": None,
            "device_bytes": None, "measured": [], "assumed": [], "notes": [],
        },
        "unit": {
            "machine_type": "n1-standard-8", "cores": 8, "memory_bytes": 30 * GIB, "accelerators": 0,
        },
        "slots_per_unit": 7,
        "derived_units": 2,
        "saturating_units": 8,
        "min_units": 2,
        "max_units": 2,
        "target_cells_per_slot": 8,
        "total_slots": 14,
        "slots_at_ceiling": 14,
        "binding_axis": "cores",
        "task_options": {"num_cpus": 1},
        "density_note": None,
    }  # fmt: skip


@given(
    cores=st.integers(1, 64),
    memory=st.none() | st.integers(1, 64 * GIB),
    vcpus=st.integers(1, 96),
    ram=st.none() | st.integers(GIB, 1360 * GIB),
)
def test_slots_never_ask_for_more_than_a_machine_has(cores, memory, vcpus, ram):
    unit = Unit(machine_type="x", cores=vcpus, memory_bytes=ram)
    slots = density_of(Slot(family="ml", cores=cores, memory_bytes=memory), unit).slots
    assert slots >= 1
    if slots > 1:
        assert slots * cores < vcpus
        assert memory is None or ram is None or slots * memory <= ram


def test_shared_memory_and_cells_leave_some_memory_to_the_system():
    assert N1_STANDARD_8.schedulable_memory is not None
    assert N1_STANDARD_8.memory_bytes is not None
    assert N1_STANDARD_8.schedulable_memory + N1_STANDARD_8.shared_memory_bytes < N1_STANDARD_8.memory_bytes


def test_thread_caps_keep_every_numeric_library_to_the_slot():
    assert thread_caps(2) == {
        "OMP_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
        "NUMEXPR_NUM_THREADS": "2",
        "VECLIB_MAXIMUM_THREADS": "2",
    }

"""How many cells (one model on one series) fit on a machine at once, and how many machines a pool wants.

Three axes bound it: cores, memory and GPU devices. What was not measured is assumed, and the plan says which
is which. All functions are pure; memory is in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

from runtender.forecast import machines
from runtender.forecast.catalogue import Catalogue

AUTO_GPU_FRACTION = 0.5
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

_LEAST_GPU_FRACTION = 0.1
_DEVICE, _CORES, _MEMORY = "device", "cores", "memory"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """One machine of a pool. `memory_bytes` None: not known."""

    machine_type: str
    cores: int
    memory_bytes: int | None
    accelerators: int = 0

    @property
    def schedulable_cores(self) -> int:
        """Cores for cells: one is left to the system."""
        return max(1, self.cores - 1)

    @property
    def schedulable_memory(self) -> int | None:
        """Memory for cells: 70 %, the rest is the system's and shared memory's."""
        return None if self.memory_bytes is None else self.memory_bytes * 7 // 10

    @property
    def shared_memory_bytes(self) -> int:
        """What may be given to `/dev/shm`: half of what cells do not get. 0 where the memory is not known."""
        return 0 if self.memory_bytes is None else self.memory_bytes * 15 // 100

    def to_json(self) -> dict[str, Any]:
        """Return the unit as it stands in a plan document."""
        return {
            "machine_type": self.machine_type,
            "cores": self.cores,
            "memory_bytes": self.memory_bytes,
            "accelerators": self.accelerators,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """What one cell needs; an axis that is None does not bound it.

    `measured` and `assumed` name the axes by where their values come from.
    """

    family: str
    cores: int = 1
    memory_bytes: int | None = None
    gpu_fraction: float | None = None
    device_bytes: int | None = None
    measured: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def basis(self) -> str:
        """`measured` if any axis was, else `assumed`."""
        return "measured" if self.measured else "assumed"

    def task_options(self) -> dict[str, Any]:
        """Return the slot as a scheduler's demand for one cell; axes that do not bound it are left out."""
        options = {"num_cpus": self.cores, "memory": self.memory_bytes, "num_gpus": self.gpu_fraction}
        return {name: value for name, value in options.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """Return the slot as it stands in a plan document."""
        return {
            "family": self.family,
            "basis": self.basis,
            "cores": self.cores,
            "memory_bytes": self.memory_bytes,
            "gpu_fraction": self.gpu_fraction,
            "device_bytes": self.device_bytes,
            "measured": list(self.measured),
            "assumed": list(self.assumed),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Density:
    """How many slots fit on a unit, which axis says so, and a note where memory is what binds."""

    slots: int
    axis: str
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolPlan:
    """The sizing of one pool of equal machines."""

    runtime: str
    family: str
    n_cells: int
    slot: Slot
    unit: Unit
    density: Density
    min_units: int
    max_units: int
    target_cells_per_slot: int

    @property
    def slots_per_unit(self) -> int:
        """Cells that one machine works on at once."""
        return self.density.slots

    @property
    def derived_units(self) -> int:
        """Machines that give each slot its target number of cells, within bounds; 0 without cells."""
        if not self.n_cells:
            return 0
        wanted = ceil(self.n_cells / (self.slots_per_unit * self.target_cells_per_slot))
        return max(self.min_units, min(wanted, self.max_units))

    @property
    def saturating_units(self) -> int:
        """Machines that would work on every cell at once."""
        return ceil(self.n_cells / self.slots_per_unit)

    def to_json(self) -> dict[str, Any]:
        """Return the plan document of the pool."""
        return {
            "runtime": self.runtime,
            "family": self.family,
            "n_cells": self.n_cells,
            "slot": self.slot.to_json(),
            "unit": self.unit.to_json(),
            "slots_per_unit": self.slots_per_unit,
            "derived_units": self.derived_units,
            "saturating_units": self.saturating_units,
            "min_units": self.min_units,
            "max_units": self.max_units,
            "target_cells_per_slot": self.target_cells_per_slot,
            "total_slots": self.slots_per_unit * self.derived_units,
            "slots_at_ceiling": self.slots_per_unit * self.max_units,
            "binding_axis": self.density.axis,
            "task_options": self.slot.task_options(),
            "density_note": self.density.note,
        }


def unit_of(machine_type: str, accelerators: int, catalogue: Catalogue = machines.SHIPPED) -> Unit:
    """Return the unit that a machine type makes, with this many GPU devices."""
    shape = machines.shape_of(machine_type, catalogue)
    return Unit(
        machine_type=machine_type,
        cores=shape.vcpus,
        memory_bytes=shape.memory_bytes or None,
        accelerators=accelerators,
    )


def assumed_slot(family: str, unit: Unit, *, gpu_type: str | None, gpu_fraction: float | None) -> Slot:
    """Return the slot of a family that was never measured: one core, unknown memory, its share of a GPU.

    `gpu_fraction` is the configured share of a device, None for the automatic one; without a GPU there is
    none.
    """
    if not unit.accelerators or gpu_type is None:
        return Slot(family=family, assumed=(_CORES, _MEMORY))
    fraction = AUTO_GPU_FRACTION if gpu_fraction is None else gpu_fraction
    return Slot(
        family=family,
        gpu_fraction=min(1.0, max(least_gpu_fraction(unit), fraction)),
        device_bytes=machines.device_bytes(gpu_type),
        assumed=(_CORES, _MEMORY, _DEVICE),
    )


def least_gpu_fraction(unit: Unit) -> float:
    """Return the smallest share of a device worth giving: below it, cores cannot feed the cells."""
    cores_per_device = ceil(unit.schedulable_cores / max(1, unit.accelerators))
    return min(_LEAST_GPU_FRACTION, 1 / max(1, cores_per_device))


def merge_slots(slots: Sequence[Slot]) -> Slot:
    """Return the slot that any of the given families fits into: the larger need on each axis."""
    if not slots:
        raise ValueError("there is no slot to merge")
    return Slot(
        family="+".join(slot.family for slot in slots),
        cores=max(slot.cores for slot in slots),
        memory_bytes=max((s.memory_bytes for s in slots if s.memory_bytes is not None), default=None),
        gpu_fraction=max((s.gpu_fraction for s in slots if s.gpu_fraction is not None), default=None),
        device_bytes=max((s.device_bytes for s in slots if s.device_bytes is not None), default=None),
        measured=_distinct(axis for slot in slots for axis in slot.measured),
        assumed=_distinct(axis for slot in slots for axis in slot.assumed),
        notes=_distinct(note for slot in slots for note in slot.notes),
    )


def density_of(slot: Slot, unit: Unit) -> Density:
    """Return how many slots fit on a unit, at least one.

    Ties go to the GPU for slots that need one, else to the cores: memory is named only where it alone binds.
    """
    bounds: dict[str, int] = {}
    if slot.gpu_fraction is not None:
        # 1 / (1 / 49) must count as 49. One slot where there is no device: the cell will say so itself.
        per_device = floor(1 / slot.gpu_fraction + 1e-9)
        bounds[_DEVICE] = max(1, unit.accelerators * per_device)
    bounds[_CORES] = max(1, unit.schedulable_cores // slot.cores)
    if unit.schedulable_memory is not None and slot.memory_bytes:
        bounds[_MEMORY] = unit.schedulable_memory // slot.memory_bytes
    axis = min(bounds, key=lambda name: bounds[name])
    slots = max(1, bounds[axis])
    if axis != _MEMORY:
        return Density(slots=slots, axis=axis)
    others = min(bound for name, bound in bounds.items() if name != _MEMORY)
    return Density(
        slots=slots, axis=axis, note=f"memory allows {slots} cells at once, the other axes {others}"
    )


def plan_pool(
    *, runtime: str, slots: Sequence[Slot], unit: Unit, n_cells: int, workers: int, target_cells_per_slot: int
) -> PoolPlan:
    """Size a pool of a fixed number of workers (a VM, or the pods of an Indexed Job)."""
    slot = merge_slots(slots)
    return PoolPlan(
        runtime=runtime,
        family=slot.family,
        n_cells=n_cells,
        slot=slot,
        unit=unit,
        density=density_of(slot, unit),
        min_units=max(1, workers),
        max_units=max(1, workers),
        target_cells_per_slot=target_cells_per_slot,
    )


def thread_caps(cores: int) -> Mapping[str, str]:
    """Return the variables that keep numeric libraries to a slot's cores, so that slots do not compete."""
    return dict.fromkeys(THREAD_VARIABLES, str(max(1, cores)))


def _distinct(items: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))

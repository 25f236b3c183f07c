"""How many cells (one model on one series) fit on a machine at once, and how many machines a pool wants.

Three axes bound it: cores, memory and GPU devices. What was not measured is assumed, and the plan says which
is which. All functions are pure; memory is in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any

from runtender.forecast import machines
from runtender.forecast.catalogue import Catalogue
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.profiles import NOTHING_MEASURED

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
    def largest_slot_memory(self) -> int | None:
        """Memory that a single cell may have: 85 % of what there is for cells."""
        return None if self.schedulable_memory is None else self.schedulable_memory * 85 // 100

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


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotWish:
    """Where a slot is to fit in, and the share of a GPU that is configured for it (None: the automatic one)."""

    unit: Unit
    gpu_type: str | None = None
    gpu_fraction: float | None = None


def slot_of(family: str, wish: SlotWish, knowledge: Knowledge) -> Slot:
    """Return the slot of a family: what was measured of its cells, and on every other axis an assumption.

    Assumed are one core, unknown memory and the configured share of a GPU. A need that no machine of this type can meet
    is cut to what one can, with a note.
    """
    unit, measured = wish.unit, knowledge.profiles.get(family, NOTHING_MEASURED)
    cores, cores_note = _cut(_CORES, measured.cores, unit.schedulable_cores)
    memory, memory_note = _cut(_MEMORY, measured.memory_bytes, unit.largest_slot_memory)
    axes = {_CORES: cores, _MEMORY: memory}
    slot = Slot(
        family=family,
        cores=cores or 1,
        memory_bytes=memory,
        measured=tuple(axis for axis, value in axes.items() if value is not None),
        assumed=tuple(axis for axis, value in axes.items() if value is None),
        notes=tuple(note for note in (cores_note, memory_note) if note),
    )
    if not unit.accelerators or wish.gpu_type is None:
        return slot
    return _on_gpu(
        slot, wish, measured.device_bytes, machines.device_bytes(wish.gpu_type, knowledge.catalogue)
    )


def _on_gpu(slot: Slot, wish: SlotWish, used_bytes: int | None, device_bytes: int) -> Slot:
    if used_bytes is None:
        fraction = AUTO_GPU_FRACTION if wish.gpu_fraction is None else wish.gpu_fraction
        slot = replace(slot, assumed=(*slot.assumed, _DEVICE))
    else:
        fraction = used_bytes / device_bytes
        slot = replace(slot, measured=(*slot.measured, _DEVICE))
    share = min(1.0, max(least_gpu_fraction(wish.unit), fraction))
    return replace(slot, gpu_fraction=share, device_bytes=device_bytes)


def _cut(axis: str, value: int | None, most: int | None) -> tuple[int | None, str]:
    if value is None or most is None or value <= most:
        return value, ""
    return most, f"{axis}: {value} measured, {most} is the most that one cell can have on this machine"


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
    fixed = max(1, workers)
    return plan_range(
        runtime=runtime,
        slots=slots,
        unit=unit,
        n_cells=n_cells,
        bounds=(fixed, fixed),
        target_cells_per_slot=target_cells_per_slot,
    )


def plan_range(
    *,
    runtime: str,
    slots: Sequence[Slot],
    unit: Unit,
    n_cells: int,
    bounds: tuple[int, int],
    target_cells_per_slot: int,
) -> PoolPlan:
    """Size a pool whose number of machines follows from its cells, within `bounds` (least and most)."""
    slot = merge_slots(slots)
    return PoolPlan(
        runtime=runtime,
        family=slot.family,
        n_cells=n_cells,
        slot=slot,
        unit=unit,
        density=density_of(slot, unit),
        min_units=bounds[0],
        max_units=bounds[1],
        target_cells_per_slot=target_cells_per_slot,
    )


def thread_caps(cores: int) -> Mapping[str, str]:
    """Return the variables that keep numeric libraries to a slot's cores, so that slots do not compete."""
    return dict.fromkeys(THREAD_VARIABLES, str(max(1, cores)))


def _distinct(items: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))

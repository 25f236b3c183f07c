"""The plan of a Ray cluster: how many nodes of which machine for the models that need a GPU, and for the others.

A pool has as many nodes as give each slot its target number of cells, within a floor and a ceiling; with autoscaling it
may grow further. A pool without models has no nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from runtender.forecast import machines
from runtender.forecast.blocks import Compute, FamilyOverride
from runtender.forecast.families import GPU_FAMILIES, pool_families
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.sizing import PoolPlan, SlotWish, plan_range, slot_of, unit_of
from runtender.model import RayNodes, RayShape

# What the config says when its author has said nothing: no choice of a machine for a GPU that it cannot carry.
_DEFAULT_GPU_MACHINE = Compute().ray_gpu_machine_type
_LEAST_CEILING = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class RayPool:
    """Equal nodes of a Ray cluster. `most_nodes` is where autoscaling ends; without it, `node_count`."""

    machine_type: str
    node_count: int
    least_nodes: int
    most_nodes: int
    sizing: PoolPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class RayPlan:
    """A Ray cluster; a pool that nothing runs in is None."""

    cluster_name: str
    head_machine_type: str
    cpu: RayPool | None
    gpu: RayPool | None

    @property
    def total_worker_nodes(self) -> int:
        """Nodes of both pools."""
        return sum(pool.node_count for pool in (self.cpu, self.gpu) if pool is not None)

    @property
    def shape(self) -> RayShape:
        """The plan without its reasons."""
        cpu, gpu = (_nodes(pool) if pool else None for pool in (self.cpu, self.gpu))
        return RayShape(
            cluster_name=self.cluster_name, head_machine_type=self.head_machine_type, cpu=cpu, gpu=gpu
        )


def _nodes(pool: RayPool) -> RayNodes:
    return RayNodes(
        machine_type=pool.machine_type,
        node_count=pool.node_count,
        least_nodes=pool.least_nodes,
        most_nodes=pool.most_nodes,
    )


def plan_ray(
    compute: Compute,
    models: Sequence[str],
    *,
    basis: int,
    gpu_type: str | None,
    accelerators: int,
    cluster_name: str,
    knowledge: Knowledge,
) -> RayPlan:
    """Plan the pools for `models`, each on `basis` series. Raises ValueError for a machine that cannot carry its GPUs.

    `gpu_type` is None for a job without GPUs: then its deep-learning models are planned on CPUs like the rest.
    """
    families = pool_families(models)
    on_gpu = [family for family in families if family in GPU_FAMILIES and gpu_type is not None]
    planner = _Pools(compute=compute, models=tuple(models), basis=basis, knowledge=knowledge)
    return RayPlan(
        cluster_name=cluster_name,
        head_machine_type=compute.ray_head_machine_type,
        cpu=planner.cpu([family for family in families if family not in on_gpu]),
        gpu=planner.gpu(on_gpu, gpu_type or "", accelerators),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pools:
    compute: Compute
    models: tuple[str, ...]
    basis: int
    knowledge: Knowledge

    def cpu(self, families: Sequence[str]) -> RayPool | None:
        catalogue = self.knowledge.catalogue
        flat = self.compute.machine_type
        if flat == machines.AUTO or catalogue.family_of(flat).with_gpus:
            flat = self.compute.ray_cpu_machine_type
        machine = self._first("machine_type", ("statistical", "ml")) or flat
        bounds = self._bounds(families, self.compute.ray_cpu_min_nodes, self.compute.ray_cpu_max_nodes)
        return self._pool(families, machine, bounds)

    def gpu(self, families: Sequence[str], gpu_type: str, accelerators: int) -> RayPool | None:
        if not families:
            return None
        flat = self.compute.machine_type
        if flat in (machines.AUTO, machines.DEFAULT_CPU_MACHINE):
            flat = self.compute.ray_gpu_machine_type
        chosen = self._first("machine_type", families) or flat
        machine = machines.resolve_machine_type(
            hardware="gpu",
            gpu_type=gpu_type,
            count=accelerators,
            default=machines.AUTO,
            override=None if chosen == _DEFAULT_GPU_MACHINE else chosen,
            catalogue=self.knowledge.catalogue,
        )
        bounds = self._bounds(families, self.compute.ray_gpu_min_nodes, self.compute.ray_gpu_max_nodes)
        return self._pool(families, machine, bounds, gpu_type, accelerators)

    def _bounds(self, families: Sequence[str], least: int, most: int | None) -> tuple[int, int, int | None]:
        """Return floor, ceiling, and the largest number of nodes that somebody named (None: nobody did)."""
        compute = self.compute
        floor = self._first("min_workers", families) or compute.min_workers or least
        named = (
            self._first("max_workers", families)
            or self._first("workers", families)
            or compute.max_workers
            or most
        )
        return floor, max(floor, named or compute.ray_max_nodes), named

    def _pool(
        self,
        families: Sequence[str],
        machine: str,
        bounds: tuple[int, int, int | None],
        gpu_type: str | None = None,
        accelerators: int = 0,
    ) -> RayPool | None:
        if not families:
            return None
        floor, ceiling, named = bounds
        unit = unit_of(machine, accelerators, self.knowledge.catalogue)
        wish = SlotWish(unit=unit, gpu_type=gpu_type, gpu_fraction=self.compute.gpu_fraction)
        count = sum(1 for model in self.models if pool_families([model])[0] in families)
        sizing = plan_range(
            runtime="ray",
            slots=[slot_of(family, wish, self.knowledge) for family in families],
            unit=unit,
            n_cells=self.basis * count,
            bounds=(floor, ceiling),
            target_cells_per_slot=self.compute.ray_target_cells_per_slot,
        )
        nodes = sizing.derived_units
        grown = named or min(ceiling, max(_LEAST_CEILING, floor, nodes))
        most = max(nodes, grown) if self.compute.ray_autoscale else nodes
        return RayPool(
            machine_type=machine, node_count=nodes, least_nodes=floor, most_nodes=most, sizing=sizing
        )

    def _first(self, name: str, families: Iterable[str]) -> Any:
        overrides = (self.compute.families.get(family, FamilyOverride()) for family in families)
        values = (getattr(override, name) for override in overrides)
        return next((value for value in values if value is not None), None)

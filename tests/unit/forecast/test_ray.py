"""The plan of a Ray cluster: pools, bounds and growth."""

from __future__ import annotations

import pytest

from runtender.forecast.config import parse_config
from runtender.forecast.gke import ray_json
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.ray import plan_ray

MIXED = ("theta", "xgboost", "tide")


@pytest.fixture
def plan(config_json):
    def build(*models, basis=100, gpu_type=None, accelerators=0, **compute):
        compute = {**compute, "gpu_type": gpu_type} if gpu_type else compute
        config = parse_config(
            config_json(models=list(models), python_runtime="gke", compute={"gke_mode": "ray", **compute})
        )
        return plan_ray(
            config.compute,
            models,
            basis=basis,
            gpu_type=gpu_type,
            accelerators=accelerators,
            cluster_name="sf-ray-x",
            knowledge=Knowledge(),
        )

    return build


def test_models_that_want_a_gpu_have_a_pool_of_their_own(plan):
    planned = plan(*MIXED, gpu_type="T4", accelerators=1, use_gpu=True)
    assert (planned.cpu.sizing.n_cells, planned.gpu.sizing.n_cells) == (200, 100)
    assert (planned.cpu.machine_type, planned.gpu.machine_type) == ("n1-standard-8", "n1-standard-8")


def test_without_a_gpu_all_models_share_one_pool(plan):
    planned = plan(*MIXED)
    assert (planned.cpu.sizing.n_cells, planned.gpu) == (300, None)


def test_a_pool_without_models_has_no_nodes(plan):
    planned = plan("theta")
    assert planned.gpu is None
    assert ray_json(planned.shape)["gpu_node_count"] == 0


@pytest.mark.parametrize(
    ("compute", "machine"),
    [
        pytest.param({}, "n1-standard-8", id="Ray's own"),
        pytest.param({"ray_cpu_machine_type": "n2-standard-16"}, "n2-standard-16", id="Ray's own, chosen"),
        pytest.param({"machine_type": "c2-standard-8"}, "c2-standard-8", id="the flat one"),
        pytest.param({"machine_type": "g2-standard-8"}, "n1-standard-8", id="a flat one with GPUs is none"),
        pytest.param(
            {"families": {"ml": {"machine_type": "c2-standard-4"}}}, "c2-standard-4", id="a family's"
        ),
    ],
)
def test_a_cpu_pools_machine_is_the_most_particular_one_named(plan, compute, machine):
    assert plan("theta", **compute).cpu.machine_type == machine


@pytest.mark.parametrize(
    ("gpu_type", "compute", "machine"),
    [
        pytest.param("L4", {}, "g2-standard-8", id="nothing chosen"),
        pytest.param(
            "L4", {"ray_gpu_machine_type": "g2-standard-16"}, "g2-standard-16", id="Ray's own, chosen"
        ),
        pytest.param("A100_80GB", {}, "a2-ultragpu-1g", id="A100 80 GB"),
    ],
)
def test_a_gpu_pools_machine_carries_its_gpu(plan, gpu_type, compute, machine):
    planned = plan("tide", gpu_type=gpu_type, accelerators=1, use_gpu=True, **compute)
    assert planned.gpu.machine_type == machine


@pytest.mark.parametrize(
    ("compute", "nodes"),
    [
        pytest.param({}, (16, 1, 16), id="as many as the cells want, up to the ceiling"),
        pytest.param({"ray_max_nodes": 4}, (4, 1, 4), id="a lower ceiling"),
        pytest.param({"ray_cpu_max_nodes": 3}, (3, 1, 3), id="this pool's ceiling"),
        pytest.param({"max_workers": 5}, (5, 1, 5), id="the flat ceiling"),
        pytest.param({"families": {"statistical": {"workers": 2}}}, (2, 1, 2), id="a family's workers"),
        pytest.param({"min_workers": 20}, (20, 20, 20), id="a floor above the ceiling"),
    ],
)
def test_nodes_stay_between_floor_and_ceiling(plan, compute, nodes):
    pool = plan("theta", basis=100_000, **compute).cpu
    assert (pool.node_count, pool.least_nodes, pool.most_nodes) == nodes


@pytest.mark.parametrize(
    ("compute", "most"),
    [
        pytest.param({}, 2, id="a small pool may grow to two"),
        pytest.param({"ray_autoscale": False}, 1, id="unless it may not grow"),
        pytest.param({"ray_cpu_max_nodes": 9}, 9, id="a named ceiling is where growth ends"),
    ],
)
def test_a_pool_grows_no_further_than_it_was_told(plan, compute, most):
    pool = plan("theta", basis=10, **compute).cpu
    assert (pool.node_count, pool.most_nodes) == (1, most)

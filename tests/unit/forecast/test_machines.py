"""Machine types and GPUs: the facts of the tables, row by row."""

from __future__ import annotations

import pytest

from runtender.forecast import machines
from runtender.forecast.catalogue import GIB, Shape


def resolve(hardware, gpu_type, count, default="auto", override=None):
    return machines.resolve_machine_type(
        hardware=hardware, gpu_type=gpu_type, count=count, default=default, override=override
    )


@pytest.mark.parametrize(
    ("gpu_type", "count", "machine"),
    [
        pytest.param("L4", 1, "g2-standard-8", id="acceptance-B1"),
        pytest.param("L4", 2, "g2-standard-24", id="acceptance-B2 two"),
        pytest.param("L4", 4, "g2-standard-48", id="acceptance-B2 four"),
        pytest.param("L4", 8, "g2-standard-96", id="acceptance-B2 eight"),
        pytest.param("T4", 1, "n1-standard-8", id="acceptance-B3 one"),
        pytest.param("T4", 2, "n1-standard-8", id="acceptance-B3 two"),
        pytest.param("T4", 4, "n1-standard-16", id="acceptance-B3 four"),
        pytest.param("A100", 1, "a2-highgpu-1g", id="acceptance-B4 one"),
        pytest.param("A100", 2, "a2-highgpu-2g", id="acceptance-B4 two"),
        pytest.param("A100", 4, "a2-highgpu-4g", id="acceptance-B4 four"),
        pytest.param("A100", 8, "a2-highgpu-8g", id="acceptance-B4 eight"),
        pytest.param("A100", 16, "a2-megagpu-16g", id="sixteen A100"),
        pytest.param("A100_80GB", 1, "a2-ultragpu-1g", id="acceptance-B5 one"),
        pytest.param("A100_80GB", 4, "a2-ultragpu-4g", id="acceptance-B5 four"),
        pytest.param("H100_80GB", 8, "a3-highgpu-8g", id="H100"),
        pytest.param("H200_141GB", 8, "a3-ultragpu-8g", id="H200"),
        pytest.param("RTX_PRO_6000", 2, "g4-standard-96", id="two RTX PRO 6000"),
        pytest.param(None, 1, "n1-standard-8", id="no GPU type counts as T4"),
    ],
)
def test_a_gpu_has_a_machine_type_of_its_own(gpu_type, count, machine):
    assert resolve("gpu", gpu_type, count) == machine


@pytest.mark.parametrize(
    ("hardware", "gpu_type", "default", "override", "machine"),
    [
        pytest.param("gpu", "L4", "n2-standard-8", None, "g2-standard-8", id="acceptance-B6"),
        pytest.param("cpu", None, "auto", None, "n2-standard-8", id="acceptance-B9 auto"),
        pytest.param("cpu", None, "a2-highgpu-1g", None, "n2-standard-8", id="acceptance-B9 a GPU series"),
        pytest.param("cpu", None, "e2-standard-4", None, "e2-standard-4", id="acceptance-B9 a choice"),
        pytest.param("gpu", "L4", "auto", "g2-standard-16", "g2-standard-16", id="acceptance-B11"),
        pytest.param("gpu", "T4", "n1-highmem-8", None, "n1-highmem-8", id="a default that fits the GPU"),
        pytest.param("cpu", None, "e2-standard-4", "auto", "e2-standard-4", id="an override that says auto"),
        pytest.param("cpu", None, "e2-standard-4", "c2-standard-8", "c2-standard-8", id="an override"),
    ],
)
def test_a_choice_wins_over_the_default_and_the_default_over_the_automatic_type(
    hardware, gpu_type, default, override, machine
):
    assert resolve(hardware, gpu_type, 1, default, override) == machine


@pytest.mark.parametrize(
    ("hardware", "gpu_type", "count", "override", "words"),
    [
        pytest.param("gpu", "T4", 1, "n1-standard-64", "at most 48 vCPUs", id="acceptance-B7"),
        pytest.param("cpu", None, 1, "g2-standard-8", "comes with GPUs", id="acceptance-B8"),
        pytest.param("gpu", "L4", 3, None, "no machine has 3 x L4", id="acceptance-B10 L4"),
        pytest.param("gpu", "T4", 8, None, "no machine has 8 x T4", id="acceptance-B10 T4"),
        pytest.param("gpu", "T4", 1, "n2-standard-8", "cannot carry T4", id="T4 outside n1"),
        pytest.param("gpu", "L4", 2, "g2-standard-32", "use g2-standard-24", id="two L4 on another g2"),
        pytest.param("gpu", "A100", 1, "a2-ultragpu-1g", "use a2-highgpu-1g", id="A100 on the 80 GB machine"),
        pytest.param("gpu", "B42", 1, None, "is not known", id="a GPU nobody knows"),
    ],
)
def test_what_does_not_go_together_is_refused(hardware, gpu_type, count, override, words):
    with pytest.raises(ValueError, match=words):
        resolve(hardware, gpu_type, count, override=override)


def test_four_t4_may_have_a_larger_machine_than_one():
    assert resolve("gpu", "T4", 4, override="n1-standard-96") == "n1-standard-96"


@pytest.mark.parametrize(
    ("machine", "vcpus", "gib"),
    [
        pytest.param("a2-highgpu-1g", 12, 85, id="acceptance-B12 A100"),
        pytest.param("a2-ultragpu-2g", 24, 340, id="acceptance-B12 A100 80 GB"),
        pytest.param("n1-highmem-8", 8, 52, id="acceptance-B13 highmem"),
        pytest.param("g2-standard-4", 4, 16, id="acceptance-B13 g2"),
        pytest.param("n9-standard-8", 8, 30, id="acceptance-B13 a series nobody knows"),
        pytest.param("n1-custom-8-16384", 8, 0, id="acceptance-B14"),
        pytest.param("n1-highcpu-16", 16, 14.4, id="highcpu"),
        pytest.param("n2d-highmem-8", 8, 64, id="n2d"),
        pytest.param("n2-highmem-128", 128, 864, id="a size with less memory than its class"),
        pytest.param("n4-highcpu-8", 8, 16, id="n4"),
        pytest.param("c3-highmem-22", 22, 176, id="c3"),
        pytest.param("c4-standard-8", 8, 30, id="c4"),
        pytest.param("c4-highmem-16", 16, 124, id="c4 highmem"),
        pytest.param("e2-medium", 2, 4, id="a shared core"),
        pytest.param("g4-standard-48", 48, 180, id="g4"),
        pytest.param("a3-highgpu-8g", 208, 1872, id="H100"),
        pytest.param("a3-ultragpu-8g", 224, 2952, id="H200"),
    ],
)
def test_a_name_tells_a_machines_shape(machine, vcpus, gib):
    assert machines.shape_of(machine) == Shape(vcpus=vcpus, memory_bytes=int(gib * GIB))


@pytest.mark.parametrize("family", [pytest.param("n1", id="acceptance-B15")])
def test_a_name_tells_a_machines_series(family):
    assert machines.machine_family("n1-highmem-32") == family


@pytest.mark.parametrize(
    ("name", "short"),
    [
        pytest.param("NVIDIA_TESLA_T4", "T4", id="acceptance-B16 Tesla"),
        pytest.param("NVIDIA_L4", "L4", id="acceptance-B16 L4"),
        pytest.param("NVIDIA_A100_80GB", "A100_80GB", id="a name with a size"),
        pytest.param("TPU_V5_LITEPOD", None, id="acceptance-B16 TPU"),
        pytest.param("nvidia-l4", None, id="Compute Engine's own name"),
    ],
)
def test_a_metric_tells_its_gpu(name, short):
    assert machines.gpu_short_name(name) == short


@pytest.mark.parametrize(
    ("machine", "cpu", "memory"),
    [
        pytest.param("n2-standard-8", "4", "19Gi", id="acceptance-B17 n2"),
        pytest.param("g2-standard-8", "4", "19Gi", id="acceptance-B17 g2"),
        pytest.param("e2-standard-4", "2", "9Gi", id="acceptance-B18 e2"),
        pytest.param("n2-standard-4", "2", "9Gi", id="acceptance-B18 n2"),
        pytest.param("n1-standard-16", "9", "36Gi", id="acceptance-B19"),
        pytest.param("n2-highmem-16", "9", "76Gi", id="acceptance-B20"),
        pytest.param("g2-standard-24", "14", "57Gi", id="acceptance-B21"),
        pytest.param("a2-highgpu-2g", "14", "102Gi", id="acceptance-B22"),
        pytest.param("n1-highcpu-2", "1", "2Gi", id="acceptance-B23"),
        pytest.param("c2-standard-30", "18", "72Gi", id="acceptance-B24"),
        pytest.param("n1-standard-8", "4", "18Gi", id="n1"),
        pytest.param("e2-standard-2", "1", "4Gi", id="two vCPUs"),
        pytest.param("a2-highgpu-1g", "7", "51Gi", id="A100"),
        pytest.param("whatever", "4", "4Gi", id="a name that cannot be parsed"),
    ],
)
def test_one_pod_fits_on_a_node_beside_its_daemons(machine, cpu, memory):
    assert machines.pod_requests(machine) == (cpu, memory)


@pytest.mark.parametrize(
    ("gpu_type", "name"),
    [
        pytest.param("A100", "nvidia-tesla-a100", id="acceptance-C29 A100"),
        pytest.param("A100_80GB", "nvidia-a100-80gb", id="acceptance-C29 A100 80 GB"),
        pytest.param("H100", "nvidia-h100", id="acceptance-C29 not in the table"),
        pytest.param("T4", "nvidia-tesla-t4", id="T4"),
        pytest.param("L4", "nvidia-l4", id="L4"),
    ],
)
def test_compute_engine_has_names_of_its_own_for_gpus(gpu_type, name):
    assert machines.accelerator_type(gpu_type) == name


@pytest.mark.parametrize(
    ("machine", "accelerators", "spot", "policy"),
    [
        pytest.param("e2-standard-4", 0, False, "MIGRATE", id="e2 migrates"),
        pytest.param("e2-standard-4", 0, True, "TERMINATE", id="Spot may not migrate"),
        pytest.param("n2-standard-8", 0, False, "TERMINATE", id="n2"),
        pytest.param("g2-standard-8", 1, False, "TERMINATE", id="a GPU cannot migrate"),
        pytest.param("n9-standard-8", 0, False, "TERMINATE", id="a series nobody knows"),
    ],
)
def test_host_maintenance_follows_series_gpus_and_spot(machine, accelerators, spot, policy):
    assert machines.on_host_maintenance(machine, accelerators=accelerators, spot=spot) == policy


@pytest.mark.parametrize(
    "name", [m for gpu in machines.SHIPPED.gpus.values() for m in gpu.automatic.values()]
)
def test_every_machine_the_plane_chooses_has_a_known_shape_and_series(name):
    assert machines.shape_of(name).memory_bytes > 0
    assert machines.machine_family(name) in machines.SHIPPED.families

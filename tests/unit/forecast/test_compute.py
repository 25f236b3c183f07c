"""What each family runs on, and which settings contradict each other."""

from __future__ import annotations

import pytest

from runtender.errors import Rejected
from runtender.forecast.compute import FamilyCompute, resolve_family_compute


def compute_of(config, family):
    return resolve_family_compute(config.compute, config.python_runtime, family)


@pytest.mark.parametrize(
    ("fields", "compute", "family", "expected"),
    [
        pytest.param(
            {},
            {},
            "statistical",
            FamilyCompute(family="statistical", runtime="gce", machine_type="n2-standard-8", workers=1),
            id="a VM by default",
        ),
        pytest.param(
            {"models": ["tide"]},
            {"use_gpu": True, "gpu_type": "L4", "accelerator_count": 2},
            "deep_learning",
            FamilyCompute(
                family="deep_learning",
                runtime="gce",
                hardware="gpu",
                gpu_type="L4",
                accelerator_count=2,
                machine_type="g2-standard-24",
                workers=1,
            ),
            id="deep learning gets the GPU",
        ),
        pytest.param(
            {"models": ["theta", "tide"]},
            {"use_gpu": True},
            "statistical",
            FamilyCompute(family="statistical", runtime="gce", machine_type="n2-standard-8", workers=1),
            id="the others do not",
        ),
        pytest.param(
            {},
            {"families": {"deep_learning": {"hardware": "gpu", "gpu_type": "A100", "accelerator_count": 4}}},
            "deep_learning",
            FamilyCompute(
                family="deep_learning",
                runtime="gce",
                hardware="gpu",
                gpu_type="A100",
                accelerator_count=4,
                machine_type="a2-highgpu-4g",
                workers=1,
            ),
            id="a GPU of the family's own",
        ),
        pytest.param(
            {"python_runtime": "gke"},
            {"workers": 3, "gke_cluster_name": "c", "families": {"ml": {"workers": 5}}},
            "ml",
            FamilyCompute(
                family="ml",
                runtime="gke",
                machine_type="n2-standard-8",
                workers=5,
                gke_mode="job",
                gke_cluster_name="c",
            ),
            id="an Indexed Job",
        ),
        pytest.param(
            {"python_runtime": "gke"},
            {"gke_mode": "ray", "workers": 3, "machine_type": "e2-standard-4"},
            "ml",
            FamilyCompute(
                family="ml", runtime="gke", machine_type="e2-standard-4", gke_mode="ray", ray_mode="gke"
            ),
            id="Ray on GKE takes no fixed pool",
        ),
        pytest.param(
            {"python_runtime": "ray"},
            {"ray_mode": "gke", "ray_cluster_name": "r"},
            "ml",
            FamilyCompute(family="ml", runtime="ray", gke_mode="ray", gke_cluster_name="r", ray_mode="gke"),
            id="acceptance-D14 Ray whose mode is gke",
        ),
        pytest.param(
            {"python_runtime": "spark"},
            {"families": {"ml": {"spark_mode": "cluster", "spark_cluster_name": "s"}}},
            "ml",
            FamilyCompute(family="ml", runtime="spark", spark_mode="cluster", spark_cluster_name="s"),
            id="Spark",
        ),
    ],
)
def test_a_family_gets_its_override_over_the_flat_block(a_config, fields, compute, family, expected):
    assert compute_of(a_config(**fields, compute=compute), family) == expected


def test_native_models_have_no_compute(a_config):
    with pytest.raises(ValueError, match="BigQuery"):
        compute_of(a_config(), "native")


@pytest.mark.parametrize(
    ("fields", "compute", "field", "words"),
    [
        pytest.param({}, {"workers": 2}, "compute.workers", "single-VM execution only", id="acceptance-C1"),
        pytest.param(
            {},
            {"families": {"ml": {"workers": 2}}},
            "compute.families.ml.workers",
            "single-VM execution only",
            id="acceptance-C1 in a family",
        ),
        pytest.param(
            {"python_runtime": "gke"},
            {"workers": 2, "families": {"statistical": {"runtime": "gce"}}},
            "compute.workers",
            "single-VM execution only",
            id="acceptance-C1 inherited",
        ),
        pytest.param(
            {},
            {"families": {"ml": {"gpu_type": "L4"}}},
            "compute.families.ml.gpu_type",
            "ml has no GPU settings",
            id="a GPU for a CPU family",
        ),
        pytest.param(
            {},
            {"families": {"ml": {"hardware": "gpu"}}},
            "compute.families.ml.hardware",
            "ml has no GPU settings",
            id="GPU hardware for a CPU family",
        ),
        pytest.param(
            {},
            {"families": {"deep_learning": {"hardware": "cpu", "gpu_type": "L4"}}},
            "compute.families.deep_learning.gpu_type",
            "hardware is cpu",
            id="a GPU type on cpu",
        ),
        pytest.param(
            {},
            {"families": {"deep_learning": {"accelerator_count": 2}}},
            "compute.families.deep_learning.accelerator_count",
            "hardware is cpu",
            id="a GPU count without a GPU",
        ),
        pytest.param(
            {},
            {"families": {"ml": {"gke_mode": "job"}}},
            "compute.families.ml.gke_mode",
            "only for gke",
            id="gke_mode elsewhere",
        ),
        pytest.param(
            {},
            {"families": {"ml": {"ray_mode": "gke"}}},
            "compute.families.ml.ray_mode",
            "only for ray",
            id="ray_mode elsewhere",
        ),
        pytest.param(
            {},
            {"families": {"ml": {"gke_cluster_name": "c"}}},
            "compute.families.ml.gke_cluster_name",
            "only for gke and Ray on GKE",
            id="a cluster for a VM",
        ),
        pytest.param(
            {},
            {"families": {"ml": {"spark_mode": "cluster"}}},
            "compute.families.ml.spark_mode",
            "only for spark",
            id="spark_mode elsewhere",
        ),
        pytest.param(
            {}, {"min_workers": 2}, "compute.min_workers", "does not scale", id="an inherited range"
        ),
        pytest.param(
            {"python_runtime": "gke"},
            {"families": {"ml": {"max_workers": 2}}},
            "compute.families.ml.max_workers",
            "does not scale",
            id="a range for an Indexed Job",
        ),
        pytest.param(
            {"python_runtime": "ray"},
            {"families": {"ml": {"min_workers": 3, "max_workers": 2}}},
            "compute.families.ml.min_workers",
            "above max_workers",
            id="a range upside down",
        ),
        pytest.param(
            {},
            {"families": {"statistical": {"machine_type": "g2-standard-8"}}},
            "compute.families.statistical.machine_type",
            "comes with GPUs",
            id="a GPU machine for a CPU family",
        ),
        pytest.param(
            {"models": ["tide"]},
            {"use_gpu": True, "gpu_type": "L4", "machine_type": "e2-standard-4"},
            "compute.machine_type",
            "cannot carry",
            id="a machine that cannot carry the GPU",
        ),
    ],
)
def test_a_contradiction_is_a_fault_of_its_field(a_config, fields, compute, field, words):
    with pytest.raises(Rejected) as rejected:
        a_config(**fields, compute=compute)
    assert [fault.field for fault in rejected.value.faults] == [field]
    assert words in str(rejected.value)


@pytest.mark.parametrize(
    ("fields", "compute"),
    [
        pytest.param({"python_runtime": "ray"}, {"min_workers": 1, "max_workers": 4}, id="a range on Ray"),
        pytest.param(
            {"python_runtime": "ray"},
            {"min_workers": 2, "families": {"ml": {"runtime": "gke"}}},
            id="a range for the others, and a family with a runtime of its own",
        ),
        pytest.param(
            {"python_runtime": "gke"},
            {"workers": 4, "families": {"statistical": {"runtime": "gce", "workers": 1}}},
            id="one family on one VM",
        ),
        pytest.param({}, {"families": {"deep_learning": {"gpu_type": "L4"}}}, id="a GPU type for later"),
        pytest.param({}, {"gke_mode": "ray", "ray_cluster_name": "r"}, id="flat settings of other runtimes"),
        pytest.param(
            {"models": ["arima_plus"]}, {"families": {"native": {}}}, id="native families need none"
        ),
    ],
)
def test_what_does_not_contradict_is_accepted(a_config, fields, compute):
    assert a_config(**fields, compute=compute)

"""What the planner refuses before anything is made, and the remedy it offers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.errors import Fault
from runtender.model import Limits


def test_a_run_longer_than_a_vm_can_live_is_refused(faults):
    assert list(faults(request={"limits": Limits(run=timedelta(days=120))})) == ["limits.run"]


def test_a_cost_cap_is_refused_while_no_price_is_known(faults):
    assert list(faults(request={"limits": Limits(cost_usd=5.0)})) == ["limits.cost_usd"]


@pytest.mark.parametrize(
    ("override", "fault"),
    [
        pytest.param({"hardware": "gpu"}, "gpu_type", id="acceptance-Z18"),
        pytest.param({"gpu_type": "L4"}, "gpu_type", id="a GPU type on cpu"),
        pytest.param({"accelerator_count": 2}, "accelerator_count", id="a GPU count on cpu"),
        pytest.param({"hardware": "gpu", "gpu_type": "H9000"}, "gpu_type", id="a GPU nobody knows"),
        pytest.param(
            {"hardware": "gpu", "gpu_type": "L4", "machine_type": "n2-standard-8"},
            "machine_type",
            id="a wrong machine",
        ),
        pytest.param({"workers": 2}, "workers", id="two VMs"),
        pytest.param({"cluster_name": "c"}, "cluster_name", id="a cluster for a VM"),
        pytest.param({"keep_cluster": True}, "keep_cluster", id="a cluster to keep"),
        pytest.param({"machine": "x"}, "machine", id="an unknown field"),
    ],
)
def test_an_override_that_cannot_be_is_refused(faults, override, fault):
    assert f"overrides.statistical.{fault}" in faults(request={"overrides": {"statistical": override}})


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        pytest.param(
            {"python_runtime": "spark"},
            Fault(
                field="python_runtime",
                problem='"spark" (the default where none is written) is not a runtime of this plane',
                remedy='write "gce" or "gke"',
            ),
            id="the default runtime",
        ),
        pytest.param(
            {"compute": {"families": {"statistical": {"runtime": "vertex"}}}},
            Fault(
                field="compute.families.statistical.runtime",
                problem='"vertex" is not a runtime of this plane',
                remedy='write "gce" or "gke"',
            ),
            id="a family's runtime",
        ),
        pytest.param(
            {"models": ["theta", "arima_plus"]},
            Fault(
                field="models",
                problem="arima_plus (native) run on BigQuery, which this plane does not serve",
                remedy="leave them out, or send `families` without it",
            ),
            id="BigQuery models",
        ),
        pytest.param(
            {"models": ["theta", "vertex_tft"]},
            Fault(
                field="models",
                problem="vertex_tft (automl) run on Vertex AI, which this plane does not serve",
                remedy="leave them out, or send `families` without it",
            ),
            id="AutoML models",
        ),
        pytest.param(
            {"ensemble": {"enabled": True}},
            Fault(
                field="ensemble.enabled",
                problem="this plane does not serve ensembles",
                remedy="disable it, or send `families` without it",
            ),
            id="an ensemble",
        ),
        pytest.param(
            {"request": {"families": ("statistcal",)}},
            Fault(
                field="families",
                problem='"statistcal" is not a family of this config',
                remedy='did you mean "statistical"?',
            ),
            id="a family that is not there",
        ),
        pytest.param(
            {"request": {"models": ("autoest",)}},
            Fault(
                field="models",
                problem='"autoest" is not a model of this config',
                remedy='did you mean "autoets"?',
            ),
            id="a model that is not there",
        ),
        pytest.param(
            {"request": {"overrides": {"ml": {"spot": True}}}},
            Fault(
                field="overrides.ml",
                problem='"ml" is not a family of this run',
                remedy="use one of statistical",
            ),
            id="an override for nobody",
        ),
        pytest.param(
            {"request": {"image": None}},
            Fault(field="image", problem="is missing", remedy="send `image`, or set SF_CONTAINER_IMAGE"),
            id="no image",
        ),
        pytest.param(
            {"request": {"package_uri": None}},
            Fault(
                field="package_uri",
                problem="is missing",
                remedy="run `runtender stage DIR` and send its URI as `package_uri`, or set SF_PACKAGE_URI",
            ),
            id="no code",
        ),
        pytest.param(
            {"variables": {"SF_COMPUTE_SA": ""}},
            Fault(
                field="SF_COMPUTE_SA", problem="is not set", remedy="set it to the workers' service account"
            ),
            id="no identity",
        ),
        pytest.param(
            {"variables": {"SF_SUBNETWORK_URI": ""}},
            Fault(
                field="SF_SUBNETWORK_URI",
                problem="is not set",
                remedy="set it to the subnet that workers run in",
            ),
            id="no network",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_with_a_remedy(faults, arguments, fault):
    assert fault in faults(**arguments).values()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(
            {"models": ["theta", "arima_plus"], "request": {"families": ("statistical",)}}, id="families"
        ),
        pytest.param({"models": ["theta", "arima_plus"], "request": {"models": ("theta",)}}, id="models"),
        pytest.param(
            {"ensemble": {"enabled": True}, "request": {"families": ("statistical",)}}, id="no ensemble"
        ),
        pytest.param(
            {
                "models": ["theta", "xgboost"],
                "compute": {"families": {"ml": {"runtime": "vertex"}}},
                "request": {"families": ("statistical",)},
            },
            id="no Vertex",
        ),
    ],
)
def test_a_part_without_what_is_not_served_is_welcome(plan, arguments):
    assert set(plan(**arguments)) == {"statistical"}


def test_an_ensemble_asked_for_by_name_is_refused(faults):
    assert "ensemble.enabled" in faults(ensemble={"enabled": True}, request={"families": ("ensemble",)})


def test_all_reasons_are_given_at_once(faults):
    found = faults(
        models=["theta", "tide", "timesfm"],
        compute={"families": {"deep_learning": {"runtime": "vertex"}}},
        request={"image": None, "overrides": {"statistical": {"hardware": "gpu"}}},
        variables={"SF_COMPUTE_SA": ""},
    )
    assert set(found) == {
        "models",
        "compute.families.deep_learning.runtime",
        "image",
        "overrides.statistical.gpu_type",
        "SF_COMPUTE_SA",
    }

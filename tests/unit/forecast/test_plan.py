"""The forecast planner: what each family's job gets, and what is refused before anything is made."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender import ids
from runtender.errors import Rejected
from runtender.forecast.canonical import run_id_of
from runtender.forecast.terms import for_attempt
from runtender.model import JobPlan, Limits, SubmitKind, WalkPolicy
from runtender.settings import Settings

GPU = {"use_gpu": True, "gpu_type": "L4"}


def test_the_plan_of_a_cpu_job_is_complete(plan, a_config, zones):
    run_id = run_id_of(a_config())
    key = f"sf-{run_id}-statistical-a1"
    planned = plan()["statistical"]
    assert planned == JobPlan(
        runtime="gce",
        kind=SubmitKind.FORECAST,
        name=key,
        models=("theta", "autoets"),
        hardware="cpu",
        machine_type="n2-standard-8",
        vcpus=8,
        slot_cores=1,
        slots=7,
        shm_size_bytes=32 * 1024**3 * 15 // 100,
        image_uri="europe-docker.pkg.dev/p/r/worker:1",
        package_uri="gs://code/runs/worker-12ab34cd.zip",
        config_uri=f"gs://code/runs/{run_id}.json",
        entrypoint="scale_forecasting.vertex_entry:main",
        driver_args=(
            "--config-uri", f"gs://code/runs/{run_id}.json",
            "--sf-project-id", "p",
            "--sf-warehouse-uri", "gs://wh/warehouse",
            "--sf-dataset-id", "scale_forecasting",
            "--sf-region", "us-central1",
            "--models", "theta,autoets",
            "--manage-header", "false",
        ),
        service_account="worker@p.iam.gserviceaccount.com",
        status_bucket="code",
        cells_uri=f"gs://wh/warehouse/artifacts/{run_id}/{key}",
        logs_uri=f"gs://code/runs/logs/{key}",
        source_table="gs://panels/flights.csv",
        labels={"run_id": run_id, "runtime": "gce"},
        placements=zones,
        walk=WalkPolicy(),
        capacity_wait=timedelta(seconds=2700),
        run_limit=timedelta(days=1),
        max_run_duration=timedelta(seconds=1800 + 86400 + 600),
        resource_plan=planned.resource_plan,
    )  # fmt: skip


@pytest.mark.parametrize("units", [pytest.param(1, id="acceptance-C2")])
def test_a_cpu_job_has_one_machine_and_no_gpu(plan, units):
    planned = plan(models=["theta", "autoets"], compute={"machine_type": "n2-standard-8"})["statistical"]
    assert (planned.accelerator_type, planned.accelerator_count, planned.gpu_type) == ("", 0, None)
    assert planned.resource_plan["max_units"] == units
    assert planned.resource_plan["n_cells"] == 2000


def test_a_gpu_job_names_its_device_and_its_share_of_it(plan):
    planned = plan(models=["tide"], compute={**GPU, "accelerator_count": 2})["deep_learning"]
    assert (planned.hardware, planned.gpu_type, planned.machine_type) == ("gpu", "L4", "g2-standard-24")
    assert (planned.accelerator_type, planned.accelerator_count) == ("nvidia-l4", 2)
    assert planned.driver_args[-2:] == ("--provisioned-hardware", "gpu")
    assert planned.resource_plan["binding_axis"] == "device"
    assert planned.slots == 4


def test_each_family_is_a_job_of_its_own_models(plan):
    plans = plan(models=["theta", "tide", "xgboost", "autoets"], compute=GPU)
    assert {family: planned.models for family, planned in plans.items()} == {
        "statistical": ("theta", "autoets"),
        "deep_learning": ("tide",),
        "ml": ("xgboost",),
    }
    assert {family: planned.hardware for family, planned in plans.items()} == {
        "statistical": "cpu",
        "deep_learning": "gpu",
        "ml": "cpu",
    }
    for planned in plans.values():
        arguments = planned.driver_args
        assert arguments[arguments.index("--models") + 1] == ",".join(planned.models)
    assert len({planned.name for planned in plans.values()}) == 3


@pytest.mark.parametrize(
    ("request_fields", "models"),
    [
        pytest.param({"families": ("ml",)}, {"ml": ("xgboost",)}, id="a family"),
        pytest.param(
            {"models": ("xgboost", "theta")}, {"statistical": ("theta",), "ml": ("xgboost",)}, id="models"
        ),
        pytest.param(
            {"families": ("statistical",), "models": ("autoets",)}, {"statistical": ("autoets",)}, id="both"
        ),
    ],
)
def test_a_message_may_ask_for_a_part(plan, request_fields, models):
    plans = plan(models=["theta", "xgboost", "autoets"], request=request_fields)
    assert {family: planned.models for family, planned in plans.items()} == models


def test_the_series_limit_bounds_the_cells(plan):
    data = {"source_table": "gs://panels/flights.csv", "series_limit": 10}
    planned = plan(data=data)["statistical"]
    assert (planned.expected_cells, planned.resource_plan["n_cells"]) == (20, 20)


def test_the_cells_of_a_whole_panel_are_not_guessed(plan):
    assert plan()["statistical"].expected_cells is None


@pytest.mark.parametrize(
    ("request_fields", "variables", "spans"),
    [
        # The original's fence equals its client's wait (and 4200 and 600 for 3600 and 0): the margin was lost.
        pytest.param({}, {}, (2700, 86400, 88800), id="acceptance-C13 (the plane's own): boot and margin on top"),
        pytest.param(
            {"limits": Limits(run=timedelta(seconds=5400))},
            {},
            (2700, 5400, 7800),
            id="acceptance-C14 (the plane's own): the caller's limit is the run's alone",
        ),
        pytest.param({}, {"SF_BATCH_JOB_WAIT_S": "60"}, (2700, 60, 2460), id="a short limit never cuts the boot"),
        pytest.param(
            {"limits": Limits(capacity_wait=timedelta(minutes=5))}, {}, (300, 86400, 88800), id="patience in the message"
        ),
        pytest.param({}, {"SF_TIME_SCALE": "20"}, (135, 4320, 4440), id="a faster world"),
        pytest.param(
            {"limits": Limits(run=timedelta(hours=1), capacity_wait=timedelta(minutes=10))},
            {"SF_TIME_SCALE": "60"},
            (10, 60, 100),
            id="the message's limits are scaled with the world",
        ),
    ],
)  # fmt: skip
def test_the_platform_ends_a_job_only_after_boot_and_run_had_their_whole_time(
    plan, request_fields, variables, spans
):
    planned = plan(request=request_fields, variables=variables)["statistical"]
    given = (planned.capacity_wait, planned.run_limit, planned.max_run_duration)
    assert tuple(span.total_seconds() for span in given) == spans
    assert planned.walk.max_wall == planned.capacity_wait


def test_a_gpu_may_take_longer_to_boot(plan):
    planned = plan(models=["tide"], compute=GPU, variables={"SF_BOOT_LIMIT_S": "60"})["deep_learning"]
    assert planned.max_run_duration.total_seconds() == 15 * 60 + 86400 + 600


def test_a_walk_without_a_wall_still_ends(plan):
    planned = plan(walk=WalkPolicy(max_wall=timedelta()))["statistical"]
    assert (planned.walk.max_wall, planned.capacity_wait) == (timedelta(), timedelta(days=1))


@pytest.mark.parametrize(
    ("override", "field", "value"),
    [
        pytest.param({"machine_type": "e2-standard-4"}, "machine_type", "e2-standard-4", id="machine"),
        pytest.param({"machine_type": "e2-standard-4"}, "on_host_maintenance", "MIGRATE", id="e2 migrates"),
        pytest.param({"spot": True}, "spot", True, id="Spot"),
        pytest.param(
            {"machine_type": "e2-standard-4", "spot": True}, "on_host_maintenance", "TERMINATE", id="Spot e2"
        ),
        pytest.param(
            {"hardware": "gpu", "gpu_type": "l4"}, "machine_type", "g2-standard-8", id="a GPU by message"
        ),
        pytest.param({"hardware": "gpu", "gpu_type": "l4"}, "gpu_type", "L4", id="GPU names in lower case"),
        pytest.param(
            {"hardware": "gpu", "gpu_type": "L4", "accelerator_count": 2},
            "accelerator_count",
            2,
            id="two GPUs",
        ),
    ],
)
def test_an_override_changes_one_familys_hardware(plan, override, field, value):
    planned = plan(request={"overrides": {"statistical": override}})["statistical"]
    assert getattr(planned, field) == value


def test_our_labels_win_over_the_callers(plan):
    labels = plan(request={"labels": {"team": "ops", "runtime": "mine"}})["statistical"].labels
    assert (labels["team"], labels["runtime"]) == ("ops", "gce")


def test_a_later_attempt_has_a_name_and_folders_of_its_own(plan, a_config, a_plane):
    key = ids.JobKey(run_id=run_id_of(a_config()), family="statistical", attempt=3)
    planned = plan(attempts={"statistical": 3})["statistical"]
    assert planned.name.endswith("-statistical-a3")
    assert planned == for_attempt(plan()["statistical"], a_plane(), key)


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param("SF_CODE_BUCKET", id="acceptance-C10 (the plane's own): a bucket is set, never guessed"),
        pytest.param("SF_CODE_BUCKET", id="acceptance-C11 (the plane's own): not from the warehouse either"),
    ],
)
def test_the_status_bucket_is_never_guessed(missing):
    with pytest.raises(Rejected, match=missing):
        Settings.from_env({"SF_PROJECT_ID": "p", "SF_WAREHOUSE_URI": "gs://wh/warehouse"})


@pytest.mark.parametrize("vcpus", [pytest.param(8, id="acceptance-C15")])
def test_a_plan_says_how_many_cores_one_machine_takes_of_the_quota(plan, vcpus):
    sizing = plan()["statistical"].resource_plan
    assert (sizing["unit"]["cores"], sizing["min_units"], sizing["max_units"]) == (vcpus, 1, 1)

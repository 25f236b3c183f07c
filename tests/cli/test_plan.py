"""`plan` and `submit --dry-run`: what a submit would do, exact to the request bodies, and that nothing is touched."""

from __future__ import annotations

import json
from pathlib import Path

import kubernetes_validate
import pytest

from runtender import ids
from runtender.client.records import newest_runs
from runtender.local.compute.schema import Schemas, installed_schemas

EXAMPLES = Path(__file__).parents[2] / "shared/runtender/local/examples"
FORECASTS = ("flights.json", "deep-learning-l4x2.json", "gke-indexed-job.json", "gke-ray.json")


@pytest.fixture
def plan(runtender, intake, parsed):
    """Plan an example on a plane that is whole; return the document."""

    def run(name, *options):
        kind = ["--kind", "task"] if name == "task.json" else []
        result = runtender(
            "plan", str(EXAMPLES / name), "--format", "json", *kind, *options, settings=intake.plane.settings
        )
        assert result.exit_code == 0, result.stderr
        return parsed(result, "json", "plan")

    return run


def check(request):
    """Hold a request's body to the published description of its API."""
    body, method = request["body"], request["method_id"]
    if method == "compute.instances.insert":
        schemas = installed_schemas()
        assert schemas is not None
        schemas.check_body("Instance", body)
    elif method == "container.projects.locations.clusters.create":
        package = pytest.importorskip("googleapiclient")
        document = Path(package.__path__[0], "discovery_cache", "documents", "container.v1.json")
        schemas = Schemas(bodies=json.loads(document.read_bytes())["schemas"], parameters={})
        schemas.check_body("CreateClusterRequest", body)
    else:
        kubernetes_validate.validate(body, "1.34", strict=True)


@pytest.mark.parametrize("name", [*FORECASTS, "task.json"])
def test_every_shipped_example_is_planned_and_its_bodies_are_valid(plan, name):
    document = plan(name)
    for job in document["jobs"]:
        for request in job["requests"]:
            check(request)


@pytest.mark.parametrize(
    ("name", "methods"),
    [
        pytest.param("flights.json", ["compute.instances.insert"], id="CPU on a VM"),
        pytest.param("task.json", ["compute.instances.insert"], id="task"),
        pytest.param(
            "gke-indexed-job.json",
            ["container.projects.locations.clusters.create", "kubernetes.jobs.create"],
            id="Indexed Job",
        ),
    ],
)
def test_the_requests_stand_in_the_order_they_are_sent(plan, name, methods):
    (job,) = plan(name)["jobs"]
    assert [request["method_id"] for request in job["requests"]] == methods


def test_ray_has_its_driver_first_so_that_the_rest_can_name_it_as_owner(plan):
    for job in plan("gke-ray.json")["jobs"]:
        kinds = [request["body"].get("kind") for request in job["requests"][1:]]
        assert kinds[0] == "Job"


def test_two_gpus_are_planned_whole(plan):
    (job,) = plan("deep-learning-l4x2.json")["jobs"]
    assert (job["machine_type"], job["accelerators"]) == ("g2-standard-24", "2 x nvidia-l4")
    (request,) = job["requests"]
    assert request["body"]["guestAccelerators"][0]["acceleratorCount"] == 2
    needed = {one["meter"]: one["needed"] for one in job["quota"]["regions"][0]["outcomes"]}
    assert needed["NVIDIA_L4_GPUS"] == 2


def test_the_shown_request_is_the_one_the_plane_would_send(plan):
    document = plan("flights.json")
    (job,) = document["jobs"]
    (request,) = job["requests"]
    assert request["body"]["labels"]["sf-nonce"] == ids.nonce(job["job_key"], 0, 0)
    assert request["query"]["requestId"] == ids.request_uuid(job["job_key"], 1, 0, 0)
    assert request["path"] == "/projects/demo/zones/us-central1-a/instances"


def test_what_is_not_served_yet_is_said(plan):
    assert [job["served"] for job in plan("gke-indexed-job.json")["jobs"]] == [False]


@pytest.mark.parametrize("name", ["flights.json", "gke-ray.json"])
def test_a_plan_for_people_names_machines_times_and_cost(runtender, intake, name):
    result = runtender("plan", str(EXAMPLES / name), settings=intake.plane.settings)
    assert result.exit_code == 0
    for words in ("Machines", "n2-standard-8", "Costs at most", "Placements", "us-central1/us-central1-a"):
        assert words in result.stdout


def test_nothing_is_touched(runtender, intake, mailbox, store, objects, flights):
    before = objects.list("demo-code", "", limit=100).objects
    for verb in (["plan"], ["submit", "--dry-run"]):
        result = runtender(*verb, str(flights), settings=intake.plane.settings)
        assert result.exit_code == 0
    assert mailbox.messages == []
    assert newest_runs(store, 10) == []
    assert objects.list("demo-code", "", limit=100).objects == before


def test_a_dry_run_is_a_plan(runtender, intake, flights):
    dry, plain = (
        runtender(*verb, str(flights), "--format", "json", settings=intake.plane.settings).stdout
        for verb in (["submit", "--dry-run"], ["plan"])
    )
    assert dry == plain


def test_a_run_beyond_its_cap_is_refused_with_the_amounts(runtender, intake, flights):
    result = runtender("plan", str(flights), "--max-cost", "0.01", settings=intake.plane.settings)
    assert result.exit_code != 0
    assert "CostCap: the run may cost $" in result.stderr


def test_a_shorter_limit_fits_under_the_cap(runtender, intake, flights):
    asked = ["--max-cost", "2", "--run-limit", "1h"]
    assert runtender("plan", str(flights), *asked, settings=intake.plane.settings).exit_code == 0


def test_the_cap_reaches_the_message(runtender, flights, mailbox):
    runtender("submit", str(flights), "--max-cost", "12.5")
    assert mailbox.messages[0]["limits"] == {"cost_usd": 12.5}


def test_all_that_is_wrong_is_told(runtender, flights):
    result = runtender("plan", str(flights))
    assert result.exit_code != 0
    for name in ("SF_COMPUTE_SA", "SF_SUBNETWORK_URI", "image", "package_uri"):
        assert name in result.stderr


def test_a_plan_shows_the_attempt_that_would_come_next(plan, store, keep, make):
    run_id = plan("flights.json")["run_id"]
    job = make.job(run_id=run_id)
    keep(make.run(job, run_id=run_id), job)
    (planned,) = plan("flights.json")["jobs"]
    assert planned["job_key"].endswith("-a2")

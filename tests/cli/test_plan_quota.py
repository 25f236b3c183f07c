"""Quota in `plan` and `submit --dry-run`: what each region's meters have for the run, read from the project as it is now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from runtender.local.compute.quotas import Quotas
from runtender.local.http import DROPPED, Fault, google_error

EXAMPLES = Path(__file__).parents[2] / "shared/runtender/local/examples"
READS = {"compute.regions.get", "compute.projects.get"}
TWO_REGIONS = {
    "regions": {
        "us-central1": {"zones": ["a"]},
        "us-east1": {"zones": ["b"], "subnetwork_uri": "projects/demo/regions/us-east1/subnetworks/s"},
    }
}
NO_N2 = Quotas(by_region={"us-central1": {"N2_CPUS": 0}})


@pytest.fixture
def plan(runtender, intake, quota_of, objects):
    """Plan an example in a project with these quotas; return the result."""

    def run(name, *options, catalogue=None, verb=("plan",), **project):
        settings = intake.plane.settings
        if catalogue is not None:
            objects.put("demo-code", "places.json", json.dumps(catalogue).encode())
            settings = replace(settings, compute_fallback="gs://demo-code/places.json")
        result = runtender(
            *verb, str(EXAMPLES / name), *options, settings=settings, quota=quota_of(**project)
        )
        assert result.exit_code == 0, result.stderr
        return result

    return run


def quota_in(result):
    (job,) = json.loads(result.stdout)["jobs"]
    return job["quota"]


def rows(quota):
    """Of the first region: limit, usage, need and verdict of each meter."""
    return {
        one["meter"]: (one["limit"], one["usage"], one["needed"], one["status"])
        for one in quota["regions"][0]["outcomes"]
    }


def test_each_meter_is_shown_with_limit_usage_need_and_verdict(plan, parsed):
    result = plan("flights.json", "--format", "json")
    (job,) = parsed(result, "json", "plan")["jobs"]
    assert job["quota"]["room"] == "ENOUGH"
    assert rows(job["quota"]) == {
        "N2_CPUS": (500, 0, 8, "OK"),
        "CPUS_ALL_REGIONS": (None, None, 8, "UNKNOWN"),
        "SSD_TOTAL_GB": (100_000, 0, 100, "OK"),
        "INSTANCES": (1000, 0, 1, "OK"),
    }


def test_gpus_are_weighed_in_their_region_and_over_all(plan):
    quota = quota_in(plan("deep-learning-l4x2.json", "--format", "json", quotas=Quotas(gpus_all_regions=1)))
    assert quota["room"] == "NONE"
    found = rows(quota)
    assert found["NVIDIA_L4_GPUS"] == (16, 0, 2, "OK")
    assert found["GPUS_ALL_REGIONS"] == (1, 0, 2, "BLOCKED")


def test_yaml_says_what_json_says(plan):
    texts = {form: plan("flights.json", "--format", form, quotas=NO_N2).stdout for form in ("json", "yaml")}
    assert yaml.safe_load(texts["yaml"])["jobs"][0]["quota"] == json.loads(texts["json"])["jobs"][0]["quota"]


def test_a_person_reads_the_figures_what_is_wrong_and_what_to_do(plan):
    shown = plan("flights.json", quotas=NO_N2).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["us-central1", "N2_CPUS", "8", "vCPUs", "0", "0", "BLOCKED"] in lines
    assert ["us-central1", "SSD_TOTAL_GB", "100", "GB", "100000", "0", "OK"] in lines
    assert "quota [BLOCKED] N2_CPUS in us-central1: 8 needed, 0 of 0 vCPUs free" in shown
    assert "ask for 8 or more of N2_CPUS, or use another region or machine" in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({}, "enough", id="enough"),
        pytest.param(
            {"quotas": NO_N2},
            "none anywhere: the run would end at once (NO_CAPACITY, QuotaBlocked)",
            id="none",
        ),
        pytest.param(
            {"quotas": NO_N2, "catalogue": TWO_REGIONS},
            "none in us-central1, which would be left out",
            id="in one of two regions",
        ),
    ],
)
def test_what_it_means_for_the_run_is_said_in_a_line(plan, options, words):
    shown = plan("flights.json", **options).stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("Quota ")]
    assert line.split(maxsplit=1) == ["Quota", words]


@pytest.mark.parametrize(
    ("capacity", "words"),
    [
        pytest.param({"wait_for_quota": True}, "none anywhere: the run would wait for it", id="waits"),
        pytest.param({"preflight": False}, "not looked at by the plane", id="looks not"),
    ],
)
def test_a_config_that_treats_quota_otherwise_is_told_so(plan, tmp_path, capacity, words):
    config = json.loads((EXAMPLES / "flights.json").read_bytes())
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**config, "compute": {"capacity": capacity}}))
    assert words in plan(path, quotas=NO_N2).stdout


def test_every_region_is_shown(plan):
    quota = quota_in(plan("flights.json", "--format", "json", catalogue=TWO_REGIONS, quotas=NO_N2))
    assert quota["room"] == "SOME"
    assert [(one["region"], one["blocked"]) for one in quota["regions"]] == [
        ("us-central1", True),
        ("us-east1", False),
    ]


@pytest.mark.parametrize(
    "answer",
    [google_error(403, "forbidden", "no"), google_error(404, "notFound", "no"), DROPPED],
    ids=["not allowed", "not there", "no answer"],
)
@pytest.mark.parametrize("verb", [("plan",), ("submit", "--dry-run")], ids=["plan", "dry run"])
def test_a_read_that_fails_is_not_known_and_fails_nothing(plan, verb, answer):
    def refuse(method, _request):
        return Fault(answer=answer, applied=False) if method in READS else None

    quota = quota_in(plan("flights.json", "--format", "json", verb=verb, faults=refuse))
    assert quota["room"] == "UNKNOWN"
    assert {(one["limit"], one["status"]) for one in quota["regions"][0]["outcomes"]} == {(None, "UNKNOWN")}
    shown = plan("flights.json", verb=verb, faults=refuse).stdout
    assert "not known, which holds nothing up" in shown


def test_a_dry_run_shows_the_quota_of_a_plan(plan):
    dry, plain = (
        quota_in(plan("flights.json", "--format", "json", verb=verb, quotas=NO_N2))
        for verb in (("submit", "--dry-run"), ("plan",))
    )
    assert dry == plain

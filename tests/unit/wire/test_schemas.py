"""The published JSON Schemas: made from the code, current, and of one mind with the readers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from importlib.resources import files

import jsonschema
import pytest

from runtender.errors import Rejected
from runtender.forecast.config import parse_config
from runtender.local.sources import FLIGHTS_CONFIG
from runtender.model import Deadlines, Job, JobPlan, Resource, ResourceKind, ResourceState
from runtender.wire import markers
from runtender.wire.messages import parse_submit
from runtender.wire.schemas import schema_documents

NOW = datetime(2026, 5, 4, tzinfo=UTC)
SPAN = timedelta(hours=1)
CONFIG = {"run_name": "r", "data": {"source_table": "t"}, "models": ["theta"], "python_runtime": "gce"}


def validator(name):
    return jsonschema.Draft202012Validator(json.loads(schema_documents()[f"{name}.json"]))


@pytest.mark.parametrize("name", schema_documents())
def test_a_schema_that_is_shipped_is_current(name):
    shipped = files("runtender").joinpath("schemas", name).read_text(encoding="utf-8")
    assert shipped == schema_documents()[name], "run `make schemas`"


@pytest.mark.parametrize("name", ["config", "marker", "message", "task"])
def test_a_schema_is_one(name):
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_documents()[f"{name}.json"]))


def test_the_shipped_example_is_valid():
    assert list(validator("config").iter_errors(json.loads(FLIGHTS_CONFIG.read_bytes()))) == []


@pytest.mark.parametrize(
    ("changes", "right"),
    [
        pytest.param({}, True, id="the least"),
        pytest.param({"compute": {"gpu_fraction": "auto"}}, True, id="auto"),
        pytest.param({"compute": {"gpu_fraction": 0.25}}, True, id="a share of a GPU"),
        pytest.param({"compute": {"min_workers": None}}, True, id="null where it means not said"),
        pytest.param({"compute": {"vertex_workers": 1}}, True, id="an old name"),
        pytest.param({"model_params": {"theta": {"season_length": [7, 365]}}}, True, id="parameters"),
        pytest.param({"features": {"anything": {"at": ["all"]}}}, True, id="the worker's business"),
        pytest.param({"compute": {"gpu_fraction": 0}}, False, id="no share of a GPU"),
        pytest.param({"compute": {"workers": 0}}, False, id="no workers"),
        pytest.param({"compute": {"wrokers": 1}}, False, id="a misspelt field"),
        pytest.param({"compute": {"families": {"stats": {}}}}, False, id="an unknown family"),
        pytest.param({"compute": {"capacity": {"gce": {"max_attempts": -1}}}}, False, id="a negative bound"),
        pytest.param({"models": ["theta", "theta"]}, False, id="a model twice"),
        pytest.param({"models": ["prophecy"]}, False, id="an unknown model"),
        pytest.param({"data": {}}, False, id="no panel"),
        pytest.param({"run_name": " "}, False, id="a blank name"),
        pytest.param({"model_params": {"theta": {"season_length": {}}}}, False, id="an object as parameter"),
    ],
)
def test_reader_and_schema_of_a_config_agree(changes, right):
    raw = {**CONFIG, **changes}
    try:
        parse_config(raw)
        taken = True
    except Rejected:
        taken = False
    assert (taken, validator("config").is_valid(raw)) == (right, right)


@pytest.mark.parametrize(
    ("message", "right"),
    [
        pytest.param({"config": CONFIG}, True, id="inline"),
        pytest.param(
            {"config_uri": "gs://b/c.json", "limits": {"run": "1h30m", "cost_usd": 5}}, True, id="stored"
        ),
        pytest.param({"action": "cancel", "run_id": "r-0123456789ab"}, True, id="cancel"),
        pytest.param({"action": "step", "job_key": "sf-r-0123456789ab-ml-a1"}, True, id="step"),
        pytest.param({"config": CONFIG, "overrides": {"ml": {"spot": True}}}, True, id="override"),
        pytest.param({"config": CONFIG, "labels": {"team": "ops"}}, True, id="label"),
        pytest.param({}, False, id="nothing to submit"),
        pytest.param({"config": CONFIG, "config_uri": "gs://b/c.json"}, False, id="two configs"),
        pytest.param({"action": "cancel"}, False, id="cancel of nothing"),
        pytest.param({"action": "retry", "run_id": "../x"}, False, id="no run id"),
        pytest.param({"action": "step"}, False, id="a step of nothing"),
        pytest.param({"config": CONFIG, "every": "1 day"}, False, id="no duration"),
        pytest.param({"config": CONFIG, "overrides": {"ml": {"spot": "yes"}}}, False, id="a wrong type"),
        pytest.param({"config": CONFIG, "labels": {"Team": "ops"}}, False, id="no label"),
        pytest.param({"config": CONFIG, "limits": {"wall": "1h"}}, False, id="an unknown limit"),
    ],
)
def test_reader_and_schema_of_a_message_agree(message, right):
    try:
        parse_submit(json.dumps(message).encode(), message_id="m", published_at=NOW)
        taken = True
    except Rejected:
        taken = False
    assert (taken, validator("message").is_valid(message)) == (right, right)


def test_the_planes_own_marker_has_every_key_and_is_valid():
    plan = JobPlan(
        runtime="gce", name="sf-x", machine_type="n2-standard-8", image_uri="i", status_bucket="b",
        placements=(), capacity_wait=SPAN, run_limit=SPAN, max_run_duration=SPAN,
    )  # fmt: skip
    job = Job(
        job_key="sf-x-ml-a1", key="k", run_id="x", family="ml", attempt=1, runtime="gce", plan=plan,
        deadlines=Deadlines(capacity=NOW), accepted_at=NOW, wake_at=NOW,
    )  # fmt: skip
    row = Resource(
        kind=ResourceKind.VM, name="sf-x", location="us-central1-a", placement=0, try_number=0, nonce="n",
        request_id="r", state=ResourceState.CREATED, since=NOW,
    )  # fmt: skip
    body = json.loads(markers.plane_marker(job, row, reason=None, detail="", now=NOW))
    assert set(body) == set(markers.KEYS)
    assert list(validator("marker").iter_errors(body)) == []

"""Builders for the runtimes' tests, and Compute Engine's published schemas as a check on request bodies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from runtender.forecast.canonical import run_id_of
from runtender.forecast.config import parse_config
from runtender.forecast.gke_run import ClusterName
from runtender.forecast.run import Places, plan_run
from runtender.ids import gce_instance_id, job_key, key_digest, nonce, request_uuid
from runtender.model import (
    Deadlines,
    Job,
    JobPlan,
    Placement,
    Resource,
    ResourceKind,
    ResourceState,
    SubmitKind,
    SubmitRequest,
    WalkPolicy,
)
from runtender.observed import ClusterFacts
from runtender.runtimes.kube import Bearing
from runtender.settings import Settings

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
RUN_ID = "demand-0123456789ab"
KEY = job_key(RUN_ID, "statistical", 1)
SUBNET = "projects/p/regions/us-central1/subnetworks/workers"
KUBERNETES_PLANE = {
    "SF_PROJECT_ID": "p",
    "SF_CODE_BUCKET": "code",
    "SF_WAREHOUSE_URI": "gs://wh/warehouse",
    "SF_COMPUTE_SA": "worker@p.iam.gserviceaccount.com",
    "SF_SUBNETWORK_URI": SUBNET,
    "SF_CONTAINER_IMAGE": "us-docker.pkg.dev/p/repo/worker:1",
    "SF_PACKAGE_URI": "gs://code/runs/worker.zip",
}


def make_plan(**changes: Any) -> JobPlan:
    plan = JobPlan(
        runtime="gce",
        name=gce_instance_id(KEY),
        models=("theta", "autoets"),
        machine_type="n2-standard-8",
        slot_cores=2,
        image_uri="us-docker.pkg.dev/p/repo/worker:1",
        package_uri="gs://code/runs/worker-0badcafe.zip",
        config_uri=f"gs://code/runs/{RUN_ID}.json",
        driver_args=("--config-uri", f"gs://code/runs/{RUN_ID}.json"),
        status_bucket="status",
        cells_uri=f"gs://cells/artifacts/{RUN_ID}/{KEY}",
        logs_uri=f"gs://code/runs/logs/{KEY}",
        placements=(Placement(region="us-central1", zone="us-central1-b", subnetwork_uri=SUBNET),),
        capacity_wait=timedelta(seconds=2700),
        run_limit=timedelta(hours=24),
        max_run_duration=timedelta(seconds=3600),
    )
    return replace(plan, **changes)


def make_job(**plan: Any) -> Job:
    return Job(
        job_key=KEY,
        key=key_digest(KEY),
        run_id=RUN_ID,
        family="statistical",
        attempt=1,
        runtime="gce",
        plan=make_plan(**plan),
        deadlines=Deadlines(capacity=NOW + timedelta(hours=1)),
        accepted_at=NOW,
        wake_at=NOW,
    )


def make_row(**changes: Any) -> Resource:
    row = Resource(
        kind=ResourceKind.VM,
        name=gce_instance_id(KEY),
        location="us-central1-b",
        placement=3,
        try_number=0,
        nonce=nonce(KEY, 3, 0),
        request_id=request_uuid(KEY, 1, 3, 0),
        state=ResourceState.INTENDED,
        since=NOW,
    )
    return replace(row, **changes)


@pytest.fixture(scope="session")
def a_job() -> Callable[..., Job]:
    """Return a builder of jobs; its arguments change the plan."""
    return make_job


@pytest.fixture(scope="session")
def a_task() -> Callable[..., Job]:
    """Return a builder of jobs that run a plain container: `command` as given."""

    def build(*command: str, **plan: Any) -> Job:
        return make_job(kind=SubmitKind.TASK, command=command, package_uri="", driver_args=(), **plan)

    return build


@pytest.fixture(scope="session")
def a_row() -> Callable[..., Resource]:
    return make_row


@pytest.fixture(scope="session")
def settings() -> Settings:
    return Settings(
        project="p", code_bucket="code", status_bucket="status", cells_prefix="gs://cells/artifacts"
    )


@cache
def discovery() -> Mapping[str, Any]:
    """Return Compute Engine's discovery document, as google-api-python-client ships it."""
    package = pytest.importorskip("googleapiclient")
    path = Path(package.__path__[0], "discovery_cache", "documents", "compute.v1.json")
    document: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


@pytest.fixture
def compute_api() -> Mapping[str, Any]:
    return discovery()


@pytest.fixture
def faults_in() -> Callable[[Any, str], list[str]]:
    """Return a check of a body against a named schema: every wrong name, type and word in it, by path."""

    def check(body: Any, schema: str) -> list[str]:
        return _faults(body, {"$ref": schema}, schema)

    return check


_TYPES: Mapping[str, type] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def _faults(value: Any, schema: Mapping[str, Any], path: str) -> list[str]:
    if "$ref" in schema:
        schema = discovery()["schemas"][schema["$ref"]]
    kind = schema.get("type")
    if not isinstance(value, _TYPES.get(str(kind), object)):
        return [f"{path}: {value!r} is no {kind}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{path}: {value!r} is not one of {schema['enum']}"]
    if isinstance(value, list):
        return [
            fault for i, item in enumerate(value) for fault in _faults(item, schema["items"], f"{path}[{i}]")
        ]
    if isinstance(value, dict):
        return [
            fault
            for key, item in value.items()
            for fault in _member_faults(key, item, schema, f"{path}.{key}")
        ]
    return []


def _member_faults(key: str, item: Any, schema: Mapping[str, Any], path: str) -> list[str]:
    member = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
    return [f"{path}: unknown name"] if member is None else _faults(item, member, path)


@pytest.fixture
def on_kubernetes() -> Callable[..., Bearing]:
    """Return a builder of one try on Kubernetes: `compute` and `request` as in a config and a message."""

    def build(
        *,
        models: tuple[str, ...] = ("theta", "autoets"),
        variables: Mapping[str, str] = MappingProxyType({}),
        overrides: Mapping[str, Any] = MappingProxyType({}),
        runtime: str = "gke",
        facts: ClusterFacts | None = None,
        **compute: Any,
    ) -> Bearing:
        plane = Settings.from_env({**KUBERNETES_PLANE, **variables})
        config = parse_config(
            {
                "run_name": "demand",
                "data": {"source_table": "gs://panels/p.csv"},
                "models": list(models),
                "python_runtime": runtime,
                "compute": compute,
            }
        )
        request = SubmitRequest(request_id="r", published_at=NOW, overrides=overrides)
        zones = (Placement(region="us-central1", zone="us-central1-b", subnetwork_uri=SUBNET),)
        places = Places(
            zones=zones,
            walk=WalkPolicy(),
            cluster_zones=zones,
            clusters={ClusterName(facts.name, None): facts} if facts else {},
            only_served=False,
        )
        ((family, plan),) = plan_run(config, request, plane, places).items()
        key = job_key(run_id_of(config), family, 1)
        job = replace(
            make_job(),
            job_key=key,
            key=key_digest(key),
            run_id=run_id_of(config),
            family=family,
            runtime="gke",
            plan=plan,
        )
        row = make_row(
            kind=ResourceKind.JOB,
            name=plan.name,
            location=plan.placements[0].location,
            nonce=nonce(key, 0, 0),
            placement=0,
        )
        return Bearing(job=job, row=row, settings=plane)

    return build


STANDING = ClusterFacts(
    name="my-gke",
    full_name="projects/p/locations/us-central1/clusters/my-gke",
    location="us-central1",
    status="RUNNING",
    has_endpoint=True,
    server_minor=34,
    machine_types=("n2-standard-8",),
)


@pytest.fixture
def a_cluster() -> Callable[..., ClusterFacts]:
    """Return a builder of standing clusters as the GKE API shows them."""
    return lambda **changes: replace(STANDING, **changes)


@pytest.fixture
def standing(
    on_kubernetes: Callable[..., Bearing], a_cluster: Callable[..., ClusterFacts]
) -> Callable[..., Bearing]:
    """Return a builder of tries with two workers on a cluster that stands; `cluster` changes what was found of it."""

    def build(cluster: Mapping[str, Any] = MappingProxyType({}), **asked: Any) -> Bearing:
        asked = {"gke_cluster_name": "my-gke", "gke_namespace": "forecasting-ns", "workers": 2, **asked}
        return on_kubernetes(facts=a_cluster(**cluster), **asked)

    return build

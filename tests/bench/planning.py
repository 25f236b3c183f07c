"""How long planning takes: a config with the models of five families on 10,000 series, from JSON to the plans of its jobs.

Run by `run.py`; prints its figures as JSON. Two of the families run on other platforms: the message asks for the rest, as
a caller must. The memory of a plan for ten million series beside that for ten thousand shows that nothing is held per series.
"""

from __future__ import annotations

import json
import statistics
import time
import tracemalloc
from datetime import UTC, datetime
from typing import Any

from tests.bench.figures import figure

from runtender.capacity.candidates import built_in_regions
from runtender.engine.planning import Ground, plan_subject, read_asked
from runtender.forecast.families import MODELS_BY_FAMILY, PYTHON_FAMILIES
from runtender.forecast.knowledge import Knowledge
from runtender.model import SubmitRequest
from runtender.settings import Settings

_ROUNDS = 50
_SERIES, _MANY_SERIES = 10_000, 10_000_000
_AIM_MS = 20
_SETTINGS = {
    "SF_PROJECT_ID": "p",
    "SF_CODE_BUCKET": "code",
    "SF_WAREHOUSE_URI": "gs://wh/warehouse",
    "SF_COMPUTE_SA": "worker@p.iam.gserviceaccount.com",
    "SF_SUBNETWORK_URI": "projects/p/regions/us-central1/subnetworks/s",
    "SF_CONTAINER_IMAGE": "us-docker.pkg.dev/p/r/worker:1",
    "SF_PACKAGE_URI": "gs://code/worker.zip",
}
_REQUEST = SubmitRequest(
    request_id="r", published_at=datetime(2026, 1, 1, tzinfo=UTC), families=PYTHON_FAMILIES
)
_GROUND = Ground(settings=Settings.from_env(_SETTINGS), regions=built_in_regions(), knowledge=Knowledge())


def config_of(series: int) -> bytes:
    """Return a config as it arrives."""
    models = [model for family in MODELS_BY_FAMILY.values() for model in family]
    config = {
        "run_name": "bench",
        "python_runtime": "gce",
        "models": models,
        "data": {"source_table": "gs://panels/p.parquet", "series_limit": series},
        "compute": {"use_gpu": True, "gpu_type": "L4"},
    }
    return json.dumps(config).encode()


def plan(config: bytes) -> None:
    """Plan every job of the config."""
    asked = read_asked(_REQUEST, json.loads(config), _GROUND.knowledge)
    plan_subject(asked, _GROUND, {})


def milliseconds(config: bytes) -> float:
    """Return how long one plan takes: the median of some."""
    plan(config)
    taken = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        plan(config)
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


def peak_kib(config: bytes) -> int:
    """Return the most memory that one plan holds at once."""
    plan(config)
    tracemalloc.start()
    try:
        plan(config)
        return round(tracemalloc.get_traced_memory()[1] / 1024)
    finally:
        tracemalloc.stop()


def figures() -> list[dict[str, Any]]:
    """Return time and memory of a plan."""
    few, many = (peak_kib(config_of(series)) for series in (_SERIES, _MANY_SERIES))
    took = round(milliseconds(config_of(_SERIES)), 1)
    return [
        figure(
            "planning 5 families on 10,000 series",
            took,
            unit="ms",
            aim=_AIM_MS,
            detail=f"median of {_ROUNDS}",
        ),
        figure(
            "memory of a plan for 1,000 times the series",
            round(many / few, 2),
            unit="x",
            aim=1.05,
            detail=f"{few} KiB at most",
        ),
    ]


if __name__ == "__main__":
    print(json.dumps(figures()))

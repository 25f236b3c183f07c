"""The demo as a newcomer runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SCHEMA = Path(__file__).parents[1] / "cli" / "schemas" / "demo.json"
MODELS = {"theta", "autoets", "auto_ces"}


def test_the_demo_forecasts_a_real_panel_and_leaves_nothing(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("runtender")), "local", "demo", "--format", "json"]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))

    run, by_four = report["runs"]
    (job,) = run["jobs"]
    assert (run["outcome"], job["outcome"], job["runtime"]) == ("SUCCEEDED", "SUCCEEDED", "gce")
    first, second = job["placements"]
    assert first["result"] == "TRANSIENT_CAPACITY: ZONE_RESOURCE_POOL_EXHAUSTED"
    assert second["result"] == "ran"
    assert first["place"] != second["place"]

    (indexed,) = by_four["jobs"]
    assert (by_four["outcome"], indexed["reason"], indexed["runtime"]) == ("SUCCEEDED", "Completed", "gke")
    assert by_four["cells"] == {
        "run_id": run["run_id"],
        "cells": 105 * len(MODELS),
        "missing": 0,
        "added": 0,
        "different": 0,
        "examples": [],
        "equal": True,
    }

    forecast = report["forecast"]
    assert (forecast["series"], forecast["rows"]) == (105, 105 * 365)
    assert set(forecast["models"]) == MODELS
    for scores in forecast["models"].values():
        assert scores["n_error"] == 0
        assert 0 < scores["mase"] < forecast["baseline"]["mase"], "better than seasonal naive"
        assert 0 < scores["smape"] < 200

    assert report["events"]["on_submit"] == 2
    assert report["events"]["on_marker"] >= 2 + 2 * 4, "each worker says that it runs, and how it ended"
    assert report["calls"]["compute.instances.insert"] == 2
    assert report["calls"]["kubernetes.jobs.create"] == 1
    assert report["leftovers"] == dict.fromkeys(
        [
            "instances",
            "disks",
            "operations",
            "machine_processes",
            "jobs",
            "pods",
            "pod_processes",
            "processes",
        ],
        0,
    )
    assert report["memory"]["peak_mib"] < 1536
    assert list(tmp_path.iterdir()) == [], "its folder is gone"
    assert "PROVISIONING, placement 2" in ended.stderr, "it showed how far it was"

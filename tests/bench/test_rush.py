"""A rush of submits on real processes: all settled, in their order, within the budget and the limit, and nothing left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("runs", "alive", "time_scale"),
    [
        pytest.param(1000, 20, 20, marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
        pytest.param(6, 3, 60),
    ],
)
def test_a_rush_is_worked_off_in_its_order_within_budget_and_limit(runs, alive, time_scale):
    asked = ["--runs", str(runs), "--alive", str(alive), "--spread", str(runs / 100), "--budget", "200"]
    asked += ["--time-scale", str(time_scale)]
    command = [sys.executable, "-m", "tests.bench.rush", *asked]
    played = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    figures = {one["figure"]: one for one in json.loads(played.stdout)}
    over = [one for one in figures.values() if one["aim"] is not None and one["value"] > one["aim"]]
    assert over == []
    assert figures["most jobs alive at once"]["value"] == alive

"""Counting cells."""

from __future__ import annotations

import json

from forecast_worker.cells import Cell, Origin
from forecast_worker.summary import Tally, to_json

ORIGIN = Origin(run_id="r", job_key="k", nonce="n")


def test_scores_are_means_over_the_series_that_count():
    tally = Tally()
    tally.add([Cell(ts_id="a", model="theta", mase=1.0, smape=10.0, seconds=0.5, peak_rss_bytes=5)])
    tally.add(
        [
            Cell(ts_id="b", model="theta", mase=2.0, smape=20.0, seconds=0.75, peak_rss_bytes=9),
            Cell(ts_id="c", model="theta", mase=None, smape=30.0),
            Cell(ts_id="d", model="theta", error="broken"),
            Cell(ts_id="a", model="tbats", error="broken"),
        ]
    )
    tally.add_baseline([Cell(ts_id="a", model="naive_seasonal", mase=4.0, smape=8.0)])

    assert tally.as_json() == {
        "n_cells": 5,
        "n_ok": 3,
        "n_error": 2,
        "models": {
            "theta": {"mase": 1.5, "smape": 20.0, "n_series": 3, "n_mase_excluded": 1, "n_error": 1},
            "tbats": {"mase": None, "smape": None, "n_series": 0, "n_mase_excluded": 0, "n_error": 1},
        },
        "baseline": {"mase": 4.0, "smape": 8.0, "n_series": 1, "n_mase_excluded": 0, "n_error": 0},
        "errors": [
            {"ts_id": "d", "model": "theta", "error": "broken"},
            {"ts_id": "a", "model": "tbats", "error": "broken"},
        ],
        "cell_seconds": 1.25,
        "peak_rss_bytes": 9,
    }


def test_a_summary_names_its_origin_and_says_that_it_is_complete():
    content = json.loads(to_json(Tally(), ORIGIN, rank=3))

    origin = {name: content[name] for name in ("run_id", "job_key", "nonce", "complete", "rank", "n_cells")}
    assert origin == {"run_id": "r", "job_key": "k", "nonce": "n", "complete": True, "rank": 3, "n_cells": 0}


def test_a_summary_stays_small_however_many_cells_fail():
    tally = Tally()
    for number in range(10_000):
        tally.add([Cell(ts_id="s" * 500, model=f"model-{number % 30}", error="e" * 500)])

    assert len(to_json(tally, ORIGIN)) < 16 * 1024

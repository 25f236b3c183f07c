"""The whole worker against the object server: what it stores, what it says, how it exits."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import forecast_worker
from forecast_worker.main import main
from runtender.cli.staging import build_package
from runtender.local.examples import build_flights_panel
from runtender.worker.forecastable import check_series
from runtender.worker.panel import Columns, PanelError, read_panel
from runtender.worker.periods import Frequency, frequency
from runtender.worker.source import bootstrap_source

DAILY = cast("Frequency", frequency("D"))
CONFIG = ("--config-uri", "gs://code/runs/r.json")


def a_panel(series: int = 4, days: int = 40) -> bytes:
    rows = [
        f"s{number},{date(2024, 1, 1) + timedelta(days=day)},{5 + number + day % 7 + day % 3}"
        for number in range(series)
        for day in range(days)
    ]
    return "\n".join(["ts_id,ds,y", *rows, ""]).encode()


def parquet_of(content: bytes) -> bytes:
    stored = io.BytesIO()
    pq.write_table(csv.read_csv(io.BytesIO(content)), stored)
    return stored.getvalue()


def cells_of(files):
    tables = [pq.read_table(io.BytesIO(body)) for name, body in files.items() if name.endswith(".parquet")]
    return [row for table in tables for row in table.to_pylist()]


def forecasts(cells):
    return {(cell["ts_id"], cell["model"]): cell["yhat"] for cell in cells}


def test_it_stores_every_cell_and_then_a_summary(run, capsys):
    run.put("warehouse", "p.csv", a_panel(28))
    run.config(models=("theta", "naive_mean"))

    assert main(CONFIG) == 0

    files = run.left()
    names = [name for name in files if name.startswith("cells/")]
    assert names == [f"cells/000000-{sequence:06d}.parquet" for sequence in range(len(names))]
    assert len(names) >= 8
    cells = cells_of(files)
    assert set(forecasts(cells)) == {(f"s{n}", model) for n in range(28) for model in ("theta", "naive_mean")}
    assert {(cell["run_id"], cell["job_key"], cell["nonce"], cell["status"]) for cell in cells} == {
        ("r", "sf-r-statistical-a1", "0123456789abcdef", "OK")
    }
    summary = run.summary()
    assert {key: summary[key] for key in ("nonce", "n_cells", "n_ok", "n_error", "complete", "series", "rows")} == {
        "nonce": "0123456789abcdef", "n_cells": 56, "n_ok": 56, "n_error": 0, "complete": True, "series": 28,
        "rows": 28 * 40,
    }  # fmt: skip
    for model in ("theta", "naive_mean"):
        mine = [cell["smape"] for cell in cells if cell["model"] == model]
        assert summary["models"][model]["smape"] == pytest.approx(math.fsum(mine) / 28)
    assert summary["baseline"]["n_series"] == 28
    assert "done: 56 of 56 cells have a forecast" in capsys.readouterr().out


def test_a_started_again_worker_leaves_what_is_stored(run):
    run.put("warehouse", "p.csv", a_panel())
    run.config()
    main(CONFIG)
    before = run.left()

    assert main(CONFIG) == 0
    assert run.left() == before


def test_the_ranks_together_do_what_one_worker_does(run, monkeypatch):
    run.put("warehouse", "p.csv", a_panel(7))
    run.config(models=("theta", "naive_drift"), series_limit=5)
    main(CONFIG)
    alone = forecasts(cells_of(run.left()))
    monkeypatch.setenv("SF_CELLS_URI", run.cells_uri + "0")
    run.cells_uri += "0"

    for rank in range(3):
        monkeypatch.setenv("JOB_COMPLETION_INDEX", str(rank))
        monkeypatch.setenv("JOB_COMPLETION_TOTAL", "3")
        assert main(CONFIG) == 0

    together = cells_of(run.left())
    assert len(together) == len(alone) == 10
    assert forecasts(together) == alone
    assert [run.summary(rank)["series"] for rank in range(3)] == [1, 2, 2]


def test_a_rank_with_nothing_to_do_still_says_so(run):
    run.put("warehouse", "p.csv", a_panel(2))
    run.config()

    assert main([*CONFIG, "--worker-rank", "0", "--worker-count", "4"]) == 0

    assert list(run.left()) == ["000000.summary.json"]
    assert (run.summary()["n_cells"], run.summary()["complete"], run.summary()["world_size"]) == (0, True, 4)


def test_a_cell_that_fails_is_counted_and_the_others_stand(run, capsys):
    run.put("warehouse", "p.csv", a_panel(3) + b"short,2024-01-01,1\n")
    run.config(models=("theta", "naive_mean"))

    assert main(CONFIG) == 0

    summary = run.summary()
    assert (summary["n_cells"], summary["n_ok"], summary["n_error"]) == (8, 6, 2)
    assert summary["errors"][0] == {
        "ts_id": "short",
        "model": summary["errors"][0]["model"],
        "error": "series 'short' has 1 values; a horizon of 7 needs at least 9",
    }
    # Who looks for the reason reads the log first.
    said = capsys.readouterr().out.splitlines()
    assert said[2].startswith(
        "warning: data.source_table: 1 of 4 series cannot be forecast by the reference worker: "
        "series 'short' has 1 values; a horizon of 7 needs at least 9; "
    )
    assert f"failed: {summary['errors'][0]['model']}: {summary['errors'][0]['error']}" in said
    assert said[-1] == "done: 6 of 8 cells have a forecast"


def test_of_many_failures_the_log_has_a_few(run, capsys):
    run.put("warehouse", "p.csv", a_panel(20, days=3) + b"".join(a_panel(21).splitlines(True)[-40:]))
    run.config(models=("naive_mean",))

    assert main(CONFIG) == 0

    failures = [line for line in capsys.readouterr().out.splitlines() if line.startswith("failed: ")]
    assert len(failures) == 6
    assert failures[-1] == "failed: 15 more cells; the cells say why each did"


def test_models_may_be_a_subset_and_parquet_a_panel(run):
    run.put("warehouse", "p.parquet", parquet_of(a_panel(2)))
    run.config(models=("theta", "naive_mean", "arima_plus", "prophet"), name="p.parquet")

    assert (
        main([*CONFIG, "--models", "naive_mean,theta", "--sf-region", "us-x", "--manage-header", "false"])
        == 0
    )

    assert sorted(run.summary()["models"]) == ["naive_mean", "theta"]


PANEL = a_panel()


@pytest.mark.parametrize(
    ("arguments", "config", "panel", "words"),
    [
        pytest.param(
            (),
            {"models": ("theta", "prophet")},
            PANEL,
            "this worker has no prophet; it has naive_mean",
            id="a model it lacks",
        ),
        pytest.param(
            ("--models", "tide,arima_plus"),
            {},
            PANEL,
            "has no tide, arima_plus",
            id="models of other workers",
        ),
        pytest.param(
            (),
            {"freq": "fortnight"},
            PANEL,
            "data.freq: the reference worker does not know 'fortnight'",
            id="frequency",
        ),
        pytest.param((), {"horizon": -1}, PANEL, "data.horizon", id="a config that is refused"),
        pytest.param((), {}, None, "data.source_table: gs://warehouse/p.csv does not exist", id="no panel"),
        pytest.param(
            (), {}, b"", "data.source_table: gs://warehouse/p.csv is empty (0 bytes)", id="empty panel"
        ),
        pytest.param(
            (), {"source_table": "p.dataset.table"}, PANEL, "'p.dataset.table' is a table", id="a table"
        ),
        pytest.param(("--worker-rank", "3", "--worker-count", "2"), {}, PANEL, "out of bounds", id="rank"),
    ],
)
def test_input_it_cannot_work_on_ends_it_before_any_work(run, capsys, arguments, config, panel, words):
    run.config(**config)
    if panel is not None:
        run.put("warehouse", "p.csv", panel)

    assert main([*CONFIG, *arguments]) == 2

    assert words in capsys.readouterr().err
    assert run.left() == {}


@pytest.mark.parametrize(
    "panel",
    [
        pytest.param(b"ts_id,date,y\n", id="missing column"),
        pytest.param(b"ts_id,ds,y\n", id="no rows"),
        pytest.param(b"ts_id,ds,y\na,1/2/13,1\n", id="no date"),
        pytest.param(b"ts_id,ds,y\na,2013-01-01,1\n", id="no series is long enough"),
        pytest.param(a_panel(2) + a_panel(2).partition(b"\n")[2], id="doubles in every series"),
    ],
)
def test_a_bad_panel_has_the_words_that_the_client_uses(run, capsys, panel):
    run.config()
    run.put("warehouse", "p.csv", panel)
    with pytest.raises(PanelError) as said_by_the_client:
        check_series(read_panel(panel, "gs://warehouse/p.csv", Columns()), 7, DAILY)

    assert main(CONFIG) == 2
    assert capsys.readouterr().err == f"forecast_worker: {said_by_the_client.value}\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "--config-uri: gs://code/runs/r.json does not exist", id="missing"),
        pytest.param(b"{", "gs://code/runs/r.json is not JSON", id="no JSON"),
        pytest.param(b"[]", "gs://code/runs/r.json is not a JSON object", id="no object"),
        pytest.param(b"\xff", "gs://code/runs/r.json is not JSON", id="no text"),
    ],
)
def test_a_config_that_cannot_be_read_is_said(run, capsys, content, words):
    if content is not None:
        run.put("code", "runs/r.json", content)

    assert main(CONFIG) == 2
    assert words in capsys.readouterr().err


def test_every_missing_variable_is_named(run, monkeypatch, capsys):
    for name in ("SF_RUN_ID", "SF_CELLS_URI"):
        monkeypatch.delenv(name)

    assert main(CONFIG) == 2
    assert "SF_RUN_ID, SF_CELLS_URI: not set" in capsys.readouterr().err


def test_a_machine_it_has_never_heard_of_is_none_of_its_business(run):
    run.put("warehouse", "p.csv", a_panel())
    config = {
        "run_name": "r",
        "models": ["naive_mean"],
        "data": {"source_table": "gs://warehouse/p.csv", "horizon": 7},
        "compute": {"use_gpu": True, "gpu_type": "X9", "machine_type": "x9-big-1"},
    }
    run.put("code", "runs/r.json", json.dumps(config).encode())

    assert main((*CONFIG, "--models", "naive_mean")) == 0
    assert run.summary()["n_ok"] == 4


def test_arguments_of_a_newer_plane_are_passed_over(run, capsys):
    run.put("warehouse", "p.csv", a_panel(1))
    run.config()

    assert main([*CONFIG, "--new-thing", "7"]) == 0
    assert "ignored arguments: --new-thing 7" in capsys.readouterr().out


def test_staged_and_bootstrapped_it_forecasts_the_example_panel(run, tmp_path):
    """As a container does it: the program text, the zip, the real panel, more than one slot."""
    package = build_package(Path(forecast_worker.__file__).parent)
    example = json.loads(build_flights_panel.PANEL.with_name("flights.json").read_text())
    example["data"] |= {"source_table": "gs://warehouse/flights.csv.gz", "series_limit": 6}
    run.put("code", package.object_name, package.content)
    run.put("code", "runs/r.json", json.dumps(example).encode())
    run.put("warehouse", "flights.csv.gz", build_flights_panel.PANEL.read_bytes())

    done = subprocess.run(
        [
            sys.executable, "-c", bootstrap_source(),
            "--package-uri", f"gs://code/{package.object_name}", "--entrypoint", "forecast_worker.main:main", *CONFIG,
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    assert "done: 18 of 18 cells have a forecast" in done.stdout
    summary = run.summary()
    assert sorted(summary["models"]) == ["auto_ces", "autoets", "theta"]
    assert (summary["n_ok"], summary["series"], summary["rows"]) == (18, 6, 6 * 365)
    assert list(tmp_path.iterdir()) == []

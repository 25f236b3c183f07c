"""`submit` and the panel: what refuses a run before anything is published, and what is only warned of."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runtender import api

# The reference worker's, whose abilities are known here, and somebody's own.
REFERENCE = ("--entrypoint", "forecast_worker.main:main")
OWN = ("--entrypoint", "worker.main:main")


@pytest.fixture
def config(flights):
    return json.loads(flights.read_bytes())


@pytest.fixture
def store_panel(flights, objects, config):
    """Store a panel and make the config name it."""

    def store(content, **data):
        objects.put("demo-warehouse", "panels/p.csv", content)
        config["data"] |= {"source_table": "gs://demo-warehouse/panels/p.csv", "horizon": 7, **data}
        flights.write_text(json.dumps(config))

    return store


def days(name, *missing, count=20):
    """The rows of a daily series, without those days that are `missing`."""
    rows = [f"{name},2013-01-{day:02},{day}" for day in range(1, count + 1) if day not in missing]
    return "\n".join([*rows, ""]).encode()


GAP = "series '{}' does not have one value per period of 'D': 1 gaps or doubles, the first after 2013-01-04T00:00"


_HEADER = b"dest,date,flights\n"
_BAD_PANELS = {
    "missing": (None, "data.source_table: gs://demo-warehouse/panels/bad.csv does not exist"),
    "empty": (b"", "data.source_table: gs://demo-warehouse/panels/bad.csv is empty (0 bytes)"),
    "without rows": (_HEADER, "has no rows"),
    "without columns": (b"dest,day\nABQ,2013-01-01\n", "data.date_col, data.target_col: "),
    "with a bad date": (_HEADER + b"ABQ,yesterday,3\n", "data.date_col: row 1"),
    "too short for the horizon": (_HEADER + b"ABQ,2013-01-01,3\n", "data.horizon: no series is long enough"),
}


@pytest.mark.parametrize(("panel", "words"), _BAD_PANELS.values(), ids=_BAD_PANELS)
def test_a_panel_that_cannot_be_forecast_stops_the_submit(
    runtender, flights, mailbox, objects, config, panel, words
):
    config["data"]["source_table"] = "gs://demo-warehouse/panels/bad.csv"
    flights.write_text(json.dumps(config))
    if panel is not None:
        objects.put("demo-warehouse", "panels/bad.csv", panel)
    result = runtender("submit", str(flights))

    assert result.exit_code == 2
    assert words in result.stderr
    assert mailbox.messages == []


def test_a_table_is_left_to_the_worker(runtender, flights, mailbox, config):
    config["data"]["source_table"] = "warehouse.sales.daily"
    flights.write_text(json.dumps(config))
    result = runtender("submit", str(flights))

    assert result.exit_code == 0
    assert "the worker checks it" in result.stderr


def test_a_panel_too_large_for_a_prompt_is_left_to_the_worker(runtender, flights, objects, config):
    # Random bytes would not compress; one long field of zeros is 33 MiB of panel.
    objects.put("demo-warehouse", "panels/large.csv", bytes(33 * 1024 * 1024))
    config["data"]["source_table"] = "gs://demo-warehouse/panels/large.csv"
    flights.write_text(json.dumps(config))
    result = runtender("submit", str(flights))

    assert result.exit_code == 0
    assert "33 MiB: columns and rows are left to the worker" in result.stderr


def test_a_parquet_panel_is_read_too(runtender, flights, objects, config, tmp_path: Path):
    days = [date(2013, 1, 1) + timedelta(days=day) for day in range(40)]
    panel = pa.table({"dest": ["ABQ"] * 40, "date": days, "flights": list(range(40))})
    pq.write_table(panel, tmp_path / "panel.parquet")
    objects.put("demo-warehouse", "panels/panel.parquet", (tmp_path / "panel.parquet").read_bytes())
    config["data"]["source_table"] = "gs://demo-warehouse/panels/panel.parquet"
    flights.write_text(json.dumps(config))

    assert "1 series, 40 rows" in runtender("submit", str(flights)).stderr


WHOLE, GAPPED, DOUBLED = days("ATL"), days("BOS", 5), days("DEN") + days("DEN")[:17]


@pytest.mark.parametrize("options", [REFERENCE, OWN, ()], ids=["reference", "own worker", "the plane's"])
def test_series_that_cannot_be_forecast_are_warned_of(runtender, flights, mailbox, store_panel, options):
    store_panel(_HEADER + WHOLE + GAPPED + DOUBLED)
    result = runtender("submit", str(flights), *options, "--format", "json")

    assert result.exit_code == 0
    (warning,) = (line for line in result.stderr.splitlines() if line.startswith("warning: "))
    assert "data.source_table: 2 of 3 series cannot be forecast by the reference worker" in warning
    assert GAP.format("BOS") in warning
    assert "series 'DEN'" in warning
    assert "fill the gaps, merge the doubles" in warning
    assert len(mailbox.messages) == 1
    assert "warning" not in result.stdout


def test_of_many_such_series_a_few_are_named(runtender, flights, store_panel):
    store_panel(_HEADER + WHOLE + b"".join(days(f"S{number}", 5) for number in range(8)))
    said = runtender("submit", str(flights)).stderr

    assert "8 of 9 series" in said
    assert [f"'S{number}'" in said for number in range(4)] == [True, True, True, False]
    assert ", and 5 more; fill the gaps" in said


@pytest.mark.parametrize(
    ("panel", "limit"),
    [
        pytest.param(GAPPED, None, id="no series"),
        pytest.param(GAPPED + days("ZRH"), 1, id="none of the first"),
    ],
)
def test_the_reference_worker_needs_a_series_that_can_be_forecast(
    runtender, flights, mailbox, store_panel, panel, limit
):
    store_panel(_HEADER + panel, series_limit=limit)
    result = runtender("submit", str(flights), *REFERENCE)

    assert result.exit_code == 2
    assert (
        f"error: data.source_table: 1 of 1 series cannot be forecast by the reference worker: {GAP.format('BOS')}"
        in (result.stderr)
    )
    assert mailbox.messages == []


def test_an_own_worker_may_fill_gaps(runtender, flights, mailbox, store_panel):
    store_panel(_HEADER + GAPPED)
    result = runtender("submit", str(flights), *OWN)

    assert result.exit_code == 0
    assert "warning: data.source_table: 1 of 1 series cannot be forecast" in result.stderr
    assert len(mailbox.messages) == 1


def test_what_the_reference_worker_lacks_stops_the_submit_with_all_of_it(runtender, flights, mailbox, config):
    config["data"] |= {"source_table": "warehouse.sales.daily", "freq": "fortnight"}
    flights.write_text(json.dumps(config))
    result = runtender("submit", str(flights), *REFERENCE)

    assert result.exit_code == 2
    unknown, table = result.stderr.splitlines()
    assert unknown.startswith(
        "error: data.freq: the reference worker does not know 'fortnight'; use one of min, h, H, D, B, W, M, "
    )
    assert table == (
        "error: data.source_table: 'warehouse.sales.daily' is a table, and the reference worker reads files only; "
        "name a file, gs://BUCKET/NAME"
    )
    assert mailbox.messages == []


def test_an_own_worker_may_know_more_frequencies(runtender, flights, mailbox, store_panel):
    store_panel(_HEADER + WHOLE, freq="fortnight")
    result = runtender("submit", str(flights), *OWN)

    assert result.exit_code == 0
    assert "warning: data.freq: the reference worker does not know 'fortnight'" in result.stderr
    assert len(mailbox.messages) == 1


def test_the_planes_own_entry_point_counts_where_none_is_named(
    runtender, flights, world, mailbox, store_panel
):
    store_panel(_HEADER + WHOLE, freq="fortnight")
    settings = replace(world.settings, entrypoint=REFERENCE[1])

    assert runtender("submit", str(flights), settings=settings).exit_code == 2
    assert runtender("submit", str(flights), *OWN, settings=settings).exit_code == 0


def test_python_gets_the_warnings_as_notes(world, config, store_panel):
    store_panel(_HEADER + WHOLE + GAPPED)

    (note,) = api.submit(config, plane=world).notes
    assert "1 of 2 series cannot be forecast" in note

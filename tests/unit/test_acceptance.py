"""Every row of the written specification on the planner and the search for capacity has a test, and the rest has a reason.

A test of a row carries `acceptance-<row>` in its id; "(the plane's own)" behind it says that the row's input is the
specified one and the result a better one, for the reason given here. `make acceptance` runs them all and prints the
summary that this file makes.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

ROWS_BY_TABLE = {
    "A": (*range(1, 19),),
    "B": (*range(1, 25),),
    "C": (*range(1, 31),),
    # D26 needs a cluster that is made for one job.
    "D": (*range(1, 26), 27, 28, 29),
    "E": (*range(1, 25),),
    "F": (*range(1, 32),),
    "G": (*range(1, 18),),
    "H": (*range(1, 22),),
    # Z10 and Z11 do, too.
    "Z": (*range(1, 10), *range(12, 21)),
}

OUR_OWN = {
    "A13": "a cluster's name ends in a hash of its whole key: cutting cannot give two jobs one cluster",
    "A14": "the same",
    "C8": "holds for machine types that take pd-balanced; others get the disk type of their series",
    "C10": "the status bucket is a setting; it is never guessed from a package's URI",
    "C11": "nor from the warehouse's",
    "C13": "the platform's limit is boot limit + run limit + 10 min: equal to a client's wait it cut runs short",
    "C14": "the caller's limit is the run's alone; boot and margin come on top",
    "C28": "all three times are measured, none is what is left of the others",
    "F23": "the planner always names a place; a job that has none all the same ends without a call",
    "D2": "a server that knows backoffLimitPerIndex gets that: backoffLimit 0 fails the Job at the first counted loss",
    "D10": "a pool with GPUs starts from none, beside a small one for the cluster's own pods",
    "H7": "a run with nothing to do and no error has not failed",
}

NOT_OURS = {
    "A10": "the plane submits neither to Ray's job server nor to BigQuery: a key is never an id there",
    "F21": "the ledger is in the job's own document: there is no publisher beside the walk that could fail",
    "H10": "ensembles are refused when they are submitted",
    "H12": "a run without families is refused when it is submitted",
}

_ID = re.compile(r"acceptance-([A-Z][0-9]+)( \(the plane's own\))?")


@cache
def rows_held() -> dict[str, bool]:
    """Return the rows that some test names; True for those held as they are written."""
    rows: dict[str, bool] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        if path != Path(__file__):
            for row, own in _ID.findall(path.read_text(encoding="utf-8")):
                rows[row] = rows.get(row, False) or not own
    return rows


def wanted_rows() -> list[str]:
    return [f"{table}{row}" for table, rows in ROWS_BY_TABLE.items() for row in rows]


@pytest.mark.parametrize("row", wanted_rows())
def test_a_row_is_tested_or_has_a_reason_not_to_be(row: str) -> None:
    assert (row in rows_held()) != (row in NOT_OURS)


@pytest.mark.parametrize("row", OUR_OWN)
def test_a_result_of_our_own_is_tested_like_any_other(row: str) -> None:
    assert row in rows_held()


def test_a_row_is_not_held_as_written_only_for_a_reason() -> None:
    assert {row for row, held in rows_held().items() if not held} - set(OUR_OWN) == set()


def summary() -> str:
    """Return what is held, table by table, and why the rest is not."""
    lines = []
    for table, rows in ROWS_BY_TABLE.items():
        held = [row for row in rows if f"{table}{row}" in rows_held()]
        lines.append(f"{table}: {len(held)} of {len(rows)} rows are held by tests")
    for title, reasons in (("our own result", OUR_OWN), ("no test", NOT_OURS)):
        lines += [f"{row} ({title}): {reason}" for row, reason in reasons.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{summary()}\n")

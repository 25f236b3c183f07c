"""A worker's summary is the user's code speaking: it is believed in its counts and in nothing that could hurt."""

from __future__ import annotations

import json

import pytest

from runtender.gcp.documents import checked
from runtender.wire.summaries import MAX_SUMMARY_BYTES, parse_summary

NONCE = "0123456789abcdef"


def summary(**changes):
    return json.dumps(
        {"nonce": NONCE, "n_cells": 4, "n_ok": 3, "n_error": 1, "complete": True, **changes}
    ).encode()


def test_counts_and_details_are_read():
    read = parse_summary(summary(models={"theta": {"mase": 0.9}}), NONCE)
    assert read is not None
    assert (read.n_cells, read.n_ok, read.n_error, read.complete) == (4, 3, 1, True)
    assert read.detail["models"] == {"theta": {"mase": 0.9}}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        summary(nonce="f" * 16),
        summary(n_ok="3"),
        summary(n_error=-1),
        summary(n_cells=True),
        summary(n_cells=2**60),
        summary(note="x" * MAX_SUMMARY_BYTES),
        summary(mase=float("nan")),
    ],
    ids=["empty", "cut", "list", "other nonce", "text", "negative", "true", "huge", "too large", "NaN"],
)
def test_what_is_no_summary_of_this_nonce_is_none(body):
    assert parse_summary(body, NONCE) is None


def test_whatever_else_it_holds_the_job_can_still_be_saved():
    deep: dict[str, object] = {"end": 1}
    for _ in range(40):
        deep = {"x": deep}
    read = parse_summary(
        summary(lists=[[1], [2]], __name__="x", **{"": 1, "a.b/c": 2, "n" * 2000: 3}, deep=deep), NONCE
    )
    assert read is not None
    assert read.detail["a.b/c"] == 2
    assert "lists" not in read.detail
    checked("jobs/x", {"summary": {"detail": dict(read.detail)}})


def test_the_first_errors_are_told_as_text():
    errors = [{"series": "a", "model": "theta", "error": "too short"}, {"error": "x" * 900}, 7]
    read = parse_summary(summary(errors=errors), NONCE)
    assert read is not None
    assert read.detail["first_errors"] == f"a: theta: too short; {'x' * 200}"
    assert "first_errors" not in (parse_summary(summary(errors="none"), NONCE) or read).detail

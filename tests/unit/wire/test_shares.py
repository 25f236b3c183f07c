"""Many workers' summaries become one; no worker's can keep it from being made, or from being stored."""

from __future__ import annotations

import json

import pytest

from runtender.model import Summary
from runtender.wire.shares import join_shares
from runtender.wire.summaries import MAX_SUMMARY_BYTES, parse_summary

LARGEST = 2**53


def share(ok=2, errors=0, *, complete=True, **detail):
    return Summary(n_cells=ok + errors, n_ok=ok, n_error=errors, complete=complete, detail=detail)


def score(mase, smape, series, *, excluded=0):
    return {"mase": mase, "smape": smape, "n_series": series, "n_mase_excluded": excluded, "n_error": 0}


def joined(*shares, workers=None):
    whole = join_shares(dict(enumerate(shares)), workers or len(shares))
    assert whole is not None
    return whole


def test_no_share_is_no_summary():
    assert join_shares({}, 4) is None


def test_counts_are_summed():
    whole = joined(share(2, 1), share(3), share(0, 4))
    assert (whole.n_cells, whole.n_ok, whole.n_error, whole.complete) == (10, 5, 5, True)


@pytest.mark.parametrize(
    ("shares", "workers", "missing"),
    [
        ({0: share(), 1: share(), 2: share()}, 4, "3"),
        ({0: share(), 1: share(complete=False)}, 2, "1"),
        (
            {3: share()},
            25,
            "0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 and 4 more",
        ),
    ],
    ids=["a rank without one", "a rank that was not done", "many"],
)
def test_it_is_complete_only_with_every_ranks_word(shares, workers, missing):
    whole = join_shares(shares, workers)
    assert whole is not None
    assert not whole.complete
    assert whole.detail["ranks_missing"] == missing


def test_scores_are_means_over_the_series_that_count():
    one = share(models={"theta": score(1.0, 10.0, 3, excluded=1)})
    other = share(models={"theta": score(4.0, 20.0, 1), "naive": score(2.0, 5.0, 1)})
    theta = joined(one, other).detail["models"]["theta"]
    assert theta == {"mase": 2.0, "smape": 12.5, "n_series": 4, "n_mase_excluded": 1, "n_error": 0}
    assert joined(one, other).detail["models"]["naive"]["mase"] == 2.0


def test_a_score_without_series_behind_it_counts_nothing():
    assert joined(share(mase=None, n_series=0), share(mase=3.0, n_series=2)).detail["mase"] == 3.0
    assert joined(share(mase=9.0, n_series=0), share(mase=None, n_series=2)).detail["mase"] is None


def test_of_peaks_and_spans_the_greatest_counts():
    detail = joined(share(peak_rss_bytes=5, seconds=9.0), share(peak_rss_bytes=7, seconds=1.0)).detail
    assert (detail["peak_rss_bytes"], detail["seconds"]) == (7, 9.0)


def test_of_words_the_first_workers_stands():
    detail = joined(share(first_errors="a"), share(first_errors="b"), share(host=None)).detail
    assert (detail["first_errors"], detail["host"]) == ("a", None)


def test_the_order_of_fields_does_not_change_from_one_process_to_the_next():
    detail = joined(share(zeta=1, alpha=2), share(beta=3, alpha=2)).detail
    assert list(detail) == ["zeta", "alpha", "beta"]


@pytest.mark.parametrize(
    "detail",
    [
        {"mase": "high"},
        {"mase": {"mean": 1}},
        {"mase": True},
        {"mase": 1.0, "n_series": "many"},
        {"mase": 1.0, "n_series": {"a": 1}},
        {"seconds": "long"},
        {"n_rows": {"a": 1}},
        {"models": 3},
        {"models": None},
    ],
    ids=str,
)
def test_a_field_of_another_shape_than_the_others_is_no_obstacle(detail):
    usual = share(mase=2.0, n_series=2, seconds=3.0, n_rows=4, models={"theta": score(1.0, 1.0, 1)})
    for shares in ([usual, share(**detail)], [share(**detail), usual], [share(**detail)]):
        assert joined(*shares).n_ok == 2 * len(shares)


def test_sums_stay_within_what_a_document_holds():
    huge = {
        rank: share(LARGEST - 1, n_rows=LARGEST, rows=-LARGEST, mase=1.0, n_series=LARGEST)
        for rank in range(2000)
    }
    whole = join_shares(huge, 2000)
    assert whole is not None
    assert (whole.n_cells, whole.n_ok) == (LARGEST, LARGEST)
    assert (whole.detail["n_rows"], whole.detail["rows"]) == (LARGEST, -LARGEST)


def test_together_workers_say_no_more_than_one_may_alone():
    """Each names other fields; a document that holds them all would be refused by the store, again and again."""
    body = {"n_cells": 1, "n_ok": 1, "n_error": 0, "complete": True, "nonce": "n"}
    read = {
        rank: parse_summary(
            json.dumps({**body, **{f"series-{rank}-{n}": "x" * 50 for n in range(600)}}).encode(), "n"
        )
        for rank in range(40)
    }
    whole = join_shares({rank: one for rank, one in read.items() if one is not None}, 40)
    assert whole is not None
    assert whole.n_cells == 40
    assert len(json.dumps(whole.detail)) < MAX_SUMMARY_BYTES + 1000

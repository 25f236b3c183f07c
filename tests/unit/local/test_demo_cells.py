"""Comparing the cells of two runs: what counts as the same forecast, and what is said where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from runtender.local.demo_cells import Comparison, compare

NOT_A_NUMBER = float("nan")


def cell(**changes: Any) -> dict[str, Any]:
    return {"status": "OK", "error": None, "mase": 0.5, "yhat": [1.0, NOT_A_NUMBER], **changes}


TWO = {("a", "theta"): cell(), ("b", "theta"): cell(mase=0.7)}


@pytest.mark.parametrize(
    ("later", "missing", "added", "different", "examples"),
    [
        pytest.param(dict(TWO), 0, 0, 0, (), id="the same"),
        pytest.param({("b", "theta"): cell(mase=0.7)}, 1, 0, 0, ("a/theta",), id="one is missing"),
        pytest.param({**TWO, ("c", "theta"): cell()}, 0, 1, 0, ("c/theta",), id="one more"),
        pytest.param(
            {**TWO, ("a", "theta"): cell(mase=0.5000000000000001)}, 0, 0, 1, ("a/theta",), id="the last bit"
        ),
        pytest.param(
            {**TWO, ("b", "theta"): cell(mase=0.7, yhat=[1.0])}, 0, 0, 1, ("b/theta",), id="another forecast"
        ),
        pytest.param({("b", "ets"): cell()}, 2, 1, 0, ("a/theta", "b/ets", "b/theta"), id="another model"),
    ],
)
def test_cells_are_compared_on_keys_and_values(later, missing, added, different, examples):
    found = compare("r-1", TWO, later)

    assert found == Comparison(
        run_id="r-1", cells=2, missing=missing, added=added, different=different, examples=examples
    )
    assert found.is_equal == (examples == ())


def test_no_cells_are_no_agreement():
    assert not compare("r-1", {}, {}).is_equal

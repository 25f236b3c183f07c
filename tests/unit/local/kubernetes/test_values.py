"""Amounts and index sets as Kubernetes writes them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtender.local.kubernetes.indexes import format_indexes, parse_indexes
from runtender.local.kubernetes.quantities import parse_quantity, quantity


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("4", "4"),
        ("250m", "0.25"),
        ("1.5", "1.5"),
        ("19Gi", str(19 * 2**30)),
        ("1k", "1000"),
        ("1Ki", "1024"),
        ("2e3", "2000"),
        ("2E3", "2000"),
        ("1E", str(10**18)),
        (3, "3"),
    ],
)
def test_amounts_are_read(text, amount) -> None:
    assert parse_quantity(text) == Decimal(amount)


@pytest.mark.parametrize("text", ["", "four", "1 Gi", "1KB", "1.5.2", None])
def test_what_is_no_amount_is_refused(text) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        parse_quantity(text)


@pytest.mark.parametrize(("amount", "text"), [("4", "4"), ("0.25", "250m"), ("7.91", "7910m")])
def test_amounts_are_written(amount, text) -> None:
    assert quantity(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("indexes", "text"),
    [([], ""), ([0], "0"), ([3, 4], "3,4"), ([1, 3, 4, 5, 7], "1,3-5,7"), (range(1000), "0-999")],
)
def test_three_or_more_indexes_in_a_row_are_written_as_their_ends(indexes, text) -> None:
    assert format_indexes(indexes) == text


@given(st.sets(st.integers(min_value=0, max_value=300)))
def test_a_set_of_indexes_is_read_back_as_it_was_written(indexes) -> None:
    assert parse_indexes(format_indexes(indexes)) == indexes

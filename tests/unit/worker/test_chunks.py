"""The order of a worker's chunks."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from runtender.worker.chunks import heaviest_first


@dataclass(frozen=True)
class Work:
    model: str
    rows: int


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param(
            [Work("theta", 10), Work("theta", 150), Work("theta", 40)],
            [Work("theta", 150), Work("theta", 40), Work("theta", 10)],
            id="acceptance-E24",
        ),
        pytest.param(
            [Work("naive_mean", 100), Work("auto_arima", 20), Work("croston", 60)],
            [Work("auto_arima", 20), Work("croston", 60), Work("naive_mean", 100)],
            id="a slow model outweighs more rows; a model without a weight counts double",
        ),
        pytest.param(
            [Work("tide", 1), Work("tsmixer", 1)],
            [Work("tide", 1), Work("tsmixer", 1)],
            id="equals keep their order",
        ),
    ],
)
def test_the_heaviest_chunk_comes_first(chunks, expected):
    assert heaviest_first(chunks) == expected

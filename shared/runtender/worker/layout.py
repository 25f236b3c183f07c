"""Where a worker's results lie below the folder of its nonce (SF_CELLS_URI); the plane looks there."""

from __future__ import annotations

CELLS_FOLDER = "cells/"
SUMMARY_SUFFIX = ".summary.json"


def cells_object(rank: int, sequence: int) -> str:
    """Return the name of a rank's cells file; `sequence` counts from 0."""
    return f"{CELLS_FOLDER}{rank:06d}-{sequence:06d}.parquet"


def summary_object(rank: int) -> str:
    """Return the name of a rank's summary, which it writes last."""
    return f"{rank:06d}{SUMMARY_SUFFIX}"

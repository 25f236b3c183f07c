"""What is deployed, in figures: the size of the bundle, and how long each of its entry points takes to wake up.

Run by `make bundle` with the zip's path. Starts are those of `cold_start.py`, from the unpacked zip.
"""

from __future__ import annotations

import argparse
import tempfile
import zipfile
from pathlib import Path

from tests.bench.cold_start import FLOOR, measure, median

_ROUNDS = 3


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    bundle = parser.parse_args().bundle
    with zipfile.ZipFile(bundle) as archive, tempfile.TemporaryDirectory() as folder:
        archive.extractall(folder)
        print(f"{bundle}: {bundle.stat().st_size / 1024:.0f} KiB, {len(archive.namelist())} files")
        starts = {
            target: median(found) for target, found in measure(_ROUNDS, Path(folder, "main.py")).items()
        }
    floor = starts.pop(FLOOR)
    print(f"functions-framework alone: {floor.process_s * 1000:.0f} ms to its first answer")
    for target, start in starts.items():
        print(f"{target}: {start.process_s * 1000:.0f} ms, {start.process_s / floor.process_s:.2f} x")


if __name__ == "__main__":
    main()

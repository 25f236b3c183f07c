"""An installed package has all that a checkout has: guest files, panel, worker, types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize(
    ("folder", "packed_as"),
    [
        pytest.param("shared/runtender", "runtender", id="package"),
        pytest.param(
            "docker/worker/forecast_worker", "runtender/local/examples/forecast_worker", id="worker"
        ),
    ],
)
def test_a_wheel_carries_every_file_of_the_folder(packed: set[str], folder: str, packed_as: str) -> None:
    listing = subprocess.run(
        ["git", "ls-files", folder], cwd=ROOT, check=True, capture_output=True, text=True
    )
    expected = {name.replace(folder, packed_as, 1) for name in listing.stdout.splitlines()}
    assert expected - packed == set()


def test_a_wheel_carries_the_entry_points_and_not_their_lock(packed: set[str]) -> None:
    folder = "runtender/local/functions/"
    assert {name for name in packed if name.startswith(folder)} == {f"{folder}main.py"}


def test_a_wheel_carries_nothing_but_the_package(packed: set[str]) -> None:
    assert {name.split("/")[0] for name in packed if ".dist-info/" not in name} == {"runtender"}


def test_a_wheel_carries_the_licence_and_the_types(packed: set[str]) -> None:
    assert "runtender/py.typed" in packed
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in packed)

"""The folder of a local cloud: who holds it, and what its state file is worth."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtender.local.errors import LocalCloudError
from runtender.local.home import CloudHome, remove_folder


@pytest.fixture
def home(tmp_path: Path) -> CloudHome:
    return CloudHome(tmp_path)


def test_one_cloud_holds_a_folder_at_a_time(home: CloudHome) -> None:
    first = home.acquire()
    assert first is not None
    with first:
        assert home.acquire() is None
    second = home.acquire()
    assert second is not None
    second.close()


def test_a_state_counts_only_while_its_cloud_holds_the_lock(home: CloudHome) -> None:
    lock = home.acquire()
    assert lock is not None
    with lock:
        assert home.read_state() is None, "it is just starting"
        home.write_state({"supervisor": 17})
        assert home.read_state() == {"supervisor": 17}
    assert home.read_state() is None, "it crashed"


def test_a_broken_state_says_what_to_do(home: CloudHome) -> None:
    lock = home.acquire()
    assert lock is not None
    with lock:
        home.state.write_text("{")
        with pytest.raises(LocalCloudError, match="runtender local down"):
            home.read_state()


def test_asking_leaves_no_trace_in_a_folder_without_a_cloud(home: CloudHome) -> None:
    assert home.read_state() is None
    assert list(home.folder.iterdir()) == []


def test_data_is_new_with_each_cloud_and_logs_stay(home: CloudHome) -> None:
    for folder in (home.data, home.logs):
        folder.mkdir(parents=True)
        (folder / "old").touch()
    home.prepare()
    assert list(home.data.iterdir()) == []
    home.write_state({})
    home.clear()
    assert {path.name for path in home.root.iterdir()} == {"logs"}
    assert (home.logs / "old").exists()


def test_removing_what_is_not_there_is_fine(tmp_path: Path) -> None:
    remove_folder(tmp_path / "none")

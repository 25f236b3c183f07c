"""`stage`: the same code is the same object everywhere, and only code is in it."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from pathlib import Path

import pytest

from runtender.cli.staging import build_package

SOURCES = {
    "__init__.py": "",
    "main.py": "def main() -> int:\n    return 0\n",
    "models/__init__.py": "",
    "models/theta.py": "LEVEL = 1\n" * 200,
}


def a_package(
    folder: Path, name: str = "worker", extra: dict[str, str] | None = None, *, reverse: bool = False
) -> Path:
    files = sorted({**SOURCES, **(extra or {})}.items(), reverse=reverse)
    for path, text in files:
        target = folder / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder / name


def test_the_same_sources_give_the_same_bytes_on_every_checkout(tmp_path):
    first = a_package(tmp_path / "first")
    second = a_package(tmp_path / "second", reverse=True)
    for path in second.rglob("*.py"):
        path.chmod(0o755)
        os.utime(path, (1_000_000_000, 1_000_000_000))

    assert build_package(first) == build_package(second)


def test_other_code_has_another_name(tmp_path):
    before = build_package(a_package(tmp_path / "before"))
    after = build_package(a_package(tmp_path / "after", extra={"models/theta.py": "LEVEL = 2\n"}))

    assert before.object_name != after.object_name


def test_the_name_is_the_digest_of_the_bytes(tmp_path):
    package = build_package(a_package(tmp_path))

    digest = hashlib.md5(package.content).hexdigest()[:8]
    assert package.object_name == f"runs/worker-{digest}.zip"


def test_the_zip_has_the_package_at_its_root_in_path_order_and_nothing_else(tmp_path):
    extra = {
        "README.md": "no code",
        ".hidden/secret.py": "KEY = 1",
        "__pycache__/main.cpython-311.py": "",
        "models/.draft.py": "",
    }
    with zipfile.ZipFile(io.BytesIO(build_package(a_package(tmp_path, extra=extra)).content)) as archive:
        entries = archive.infolist()

    assert [entry.filename for entry in entries] == [
        "worker/__init__.py",
        "worker/main.py",
        "worker/models/__init__.py",
        "worker/models/theta.py",
    ]
    assert {entry.compress_type for entry in entries} == {zipfile.ZIP_DEFLATED}
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {(entry.external_attr >> 16, entry.create_system, entry.extra) for entry in entries} == {
        (0o100644, 3, b"")
    }


def test_a_staged_package_can_be_imported_from_its_zip(tmp_path, monkeypatch):
    package = build_package(a_package(tmp_path, name="staged_worker"))
    archive = tmp_path / "code.zip"
    archive.write_bytes(package.content)
    monkeypatch.syspath_prepend(str(archive))

    from staged_worker.main import main  # type: ignore[import-not-found] # noqa: PLC0415 - exists only now

    assert main() == 0


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_stage_uploads_once_and_prints_where_the_code_lies(runtender, objects, tmp_path, parsed, form):
    folder = a_package(tmp_path)
    first = parsed(runtender("stage", str(folder), "--format", form), form, "package")
    second = parsed(runtender("stage", str(folder), "--format", form), form, "package")

    assert (first["uploaded"], second["uploaded"]) == (True, False)
    assert first["package_uri"] == second["package_uri"]
    assert first["entrypoint"] == "worker.main:main"
    name = first["package_uri"].removeprefix("gs://demo-code/")
    assert objects.read("demo-code", name, limit=1_000_000) == build_package(folder).content


_ENTRYPOINTS = {
    "vertex_entry before main": ({"vertex_entry.py": "def main(): ..."}, "worker.vertex_entry:main"),
    "main": ({}, "worker.main:main"),
    "the package itself": ({"main.py": "", "__init__.py": "def main(): ..."}, "worker:main"),
    "none": ({"main.py": "def other(): ..."}, None),
}


@pytest.mark.parametrize(("extra", "entrypoint"), _ENTRYPOINTS.values(), ids=_ENTRYPOINTS)
def test_the_entry_point_is_found_where_one_stands_out(tmp_path, extra, entrypoint):
    assert build_package(a_package(tmp_path, extra=extra)).entrypoint == entrypoint


def test_stage_asks_for_the_entry_point_where_none_stands_out(runtender, tmp_path):
    result = runtender("stage", str(a_package(tmp_path, extra={"main.py": ""})))

    assert result.exit_code == 0
    assert "--entrypoint" in result.stderr


_REFUSED = {
    "no package": ("__init__.py", None, "is not a Python package"),
    "no Python": ("main.py", "def main(:", "worker/main.py is not Python"),
}


@pytest.mark.parametrize(("path", "text", "words"), _REFUSED.values(), ids=_REFUSED)
def test_what_is_no_package_is_a_usage_error(runtender, tmp_path, path, text, words):
    folder = a_package(tmp_path)
    (folder / path).unlink()
    if text is not None:
        (folder / path).write_text(text)
    result = runtender("stage", str(folder))

    assert result.exit_code == 2
    assert words in result.stderr


def test_a_folder_that_cannot_be_imported_is_refused(runtender, tmp_path):
    result = runtender("stage", str(a_package(tmp_path, name="my-worker")))

    assert result.exit_code == 2
    assert "'my-worker' cannot be imported" in result.stderr

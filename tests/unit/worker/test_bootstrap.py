"""The bootstrap as containers run it: its text behind `python -c`, code from the object server."""

from __future__ import annotations

import ast
import io
import os
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from runtender.worker.source import bootstrap_source

URI = "gs://code/runs/p.zip"

ENTRY = """
import json, os, sys
def main():
    print(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd(), "mpl": os.environ["MPLCONFIGDIR"], "file": __file__}))
    return 3
def takes_list(arguments):
    return len(arguments)
def returns_nothing():
    pass
def leaves():
    sys.exit(7)
def breaks():
    raise RuntimeError("broken inside")
ANSWER = 42
"""


def zipped(**modules: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("demo/__init__.py", "")
        for name, text in modules.items():
            archive.writestr(f"demo/{name}.py", text)
    return content.getvalue()


def run(
    *arguments: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SF_PROJECT_ID": "p", **(environ or {})}
    command = [sys.executable, "-c", bootstrap_source(), *arguments]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def run_here(monkeypatch, capsys, tmp_path):
    """Run the text in this process, which has loaded the client; return its exit status and what it said."""
    program = tmp_path / "bootstrap.py"
    program.write_text(bootstrap_source())

    def run_here(*arguments: str) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", ["-c", *arguments])
        monkeypatch.setattr(sys, "path", list(sys.path))
        monkeypatch.setenv("MPLCONFIGDIR", "")
        monkeypatch.setenv("SF_PROJECT_ID", "p")
        with pytest.raises(SystemExit) as left:
            runpy.run_path(str(program), run_name="__main__")
        # As the interpreter does: to leave with nothing is success.
        return left.value.code or 0, capsys.readouterr().err

    yield run_here
    for name in [name for name in sys.modules if name.split(".")[0] == "demo"]:
        del sys.modules[name]


@pytest.fixture
def staged(bucket):
    bucket.blob("runs/p.zip").upload_from_string(
        zipped(entry=ENTRY, needs="import a_library_that_is_not_there")
    )
    return bucket


@pytest.mark.usefixtures("staged")
def test_the_entry_point_gets_the_other_arguments_and_its_answer_is_the_status(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    arguments = (
        "--config-uri",
        "gs://b/c",
        "--package-uri",
        URI,
        "--entrypoint",
        "demo.entry:main",
        "--models",
        "a,b",
    )

    done = run(*arguments, cwd=tmp_path, environ={"TMPDIR": str(scratch)})

    assert (done.returncode, done.stderr) == (3, "")
    told = ast.literal_eval(done.stdout)
    folder = Path(told["mpl"])
    assert told["argv"] == ["--config-uri", "gs://b/c", "--models", "a,b"]
    assert told["cwd"] == str(tmp_path)
    assert (folder.parent, folder.name.startswith("sf_vertex_")) == (scratch, True)
    assert told["file"] == str(folder / "scale_forecasting.zip" / "demo" / "entry.py")
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("function", "status"),
    [
        pytest.param("takes_list", 2, id="a function with a parameter gets the list"),
        pytest.param("returns_nothing", 0, id="nothing returned is success"),
        pytest.param("leaves", 7, id="an exit is passed on"),
    ],
)
@pytest.mark.usefixtures("staged")
def test_the_status_follows_the_entry_point(run_here, function, status):
    told = run_here("--package-uri", URI, "--entrypoint", f"demo.entry:{function}", "x", "y")

    assert told == (status, "")


@pytest.mark.usefixtures("staged")
def test_a_bug_shows_its_traceback():
    done = run("--package-uri", URI, "--entrypoint", "demo.entry:breaks", "x", "y")

    assert done.returncode == 1
    assert "broken inside" in done.stderr


@pytest.mark.usefixtures("staged")
def test_package_and_entry_point_may_come_from_the_environment(run_here, monkeypatch):
    monkeypatch.setenv("SF_PACKAGE_URI", URI)
    monkeypatch.setenv("SF_ENTRYPOINT", "demo.entry:leaves")

    assert run_here() == (7, "")


@pytest.mark.usefixtures("staged")
def test_where_the_working_directory_cannot_be_written_the_scratch_folder_takes_its_place(tmp_path):
    # Root may write everywhere, so the operating system's answer is put into the interpreter.
    (tmp_path / "sitecustomize.py").write_text("import os\nos.access = lambda path, mode: False\n")
    arguments = ("--package-uri", URI, "--entrypoint", "demo.entry:main")

    told = ast.literal_eval(run(*arguments, environ={"PYTHONPATH": str(tmp_path)}).stdout)

    assert told["cwd"] == told["mpl"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param((), "no package; pass --package-uri", id="no package named"),
        pytest.param(("--package-uri", "p.zip"), "'p.zip' is not gs://BUCKET/NAME.zip", id="no URI"),
        pytest.param(
            ("--package-uri", "gs://code/none.zip"), "gs://code/none.zip cannot be read: 404", id="missing"
        ),
        pytest.param(("--package-uri", "gs://code/bad.zip"), "not a zip file (8 bytes)", id="no zip"),
        pytest.param(
            ("--package-uri", URI, "--entrypoint", "demo"), "'demo' is not MODULE:FUNCTION", id="no function"
        ),
        pytest.param(
            ("--package-uri", URI),
            "scale_forecasting.vertex_entry:main: no module 'scale_forecasting'; the zip has demo",
            id="the default entry point is not in the zip",
        ),
        pytest.param(
            ("--package-uri", URI, "--entrypoint", "demo.nothing:main"),
            "no module 'demo.nothing'",
            id="no module",
        ),
        pytest.param(
            ("--package-uri", URI, "--entrypoint", "demo.entry:gone"),
            "has no function 'gone'",
            id="no such function",
        ),
        pytest.param(
            ("--package-uri", URI, "--entrypoint", "demo.entry:ANSWER"),
            "has no function 'ANSWER'",
            id="a constant",
        ),
    ],
)
def test_where_there_is_nothing_to_call_it_says_so_and_exits_2(run_here, staged, arguments, words):
    staged.blob("bad.zip").upload_from_string(b"no zip!!")

    status, said = run_here(*arguments)

    assert status == 2
    assert said.startswith("bootstrap: ")
    assert words in said


@pytest.mark.usefixtures("staged")
def test_nothing_but_what_is_missing_is_said():
    done = run("--package-uri", URI, "--entrypoint", "demo.entry:gone")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "bootstrap: entry point demo.entry:gone: the module has no function 'gone'\n"


@pytest.mark.usefixtures("staged")
def test_a_library_that_the_code_misses_is_the_codes_own_fault():
    done = run("--package-uri", URI, "--entrypoint", "demo.needs:main")

    assert done.returncode == 1
    assert "No module named 'a_library_that_is_not_there'" in done.stderr

"""The zip that is deployed: the same bytes from the same sources, and with its requirements all that its entry points need."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runtender.local.emulators import free_port

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0

Post = Callable[..., int]
Serve = Callable[[str], Post]


def load(source: Path) -> Any:
    """Load a script that is in no package."""
    spec = importlib.util.spec_from_file_location(source.stem, source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUNDLE = load(ROOT / "functions" / "bundle.py")


def contents() -> Mapping[str, bytes]:
    found: Mapping[str, bytes] = BUNDLE.contents()
    return found


def write_bundle(folder: Path, root: Path = ROOT) -> Path:
    written: Path = BUNDLE.write_bundle(folder, root)
    return written


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def unpacked(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    return folder


def test_another_checkout_at_another_time_gives_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    for name in ("LICENSE", "pyproject.toml", "functions", "shared"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        (other / name).parent.mkdir(exist_ok=True)
        copy(ROOT / name, other / name)
    for number, path in enumerate(sorted(other.rglob("*"), reverse=True)):
        os.utime(path, (number * 86_400.0, number * 86_400.0))
        path.chmod(0o700 if path.is_dir() else 0o640)
    # What tools leave in a folder.
    cache = other / "shared" / "runtender" / "gcp" / "__pycache__" / "pubsub.cpython-311.pyc"
    cache.parent.mkdir(exist_ok=True)
    cache.write_bytes(b"stale")
    (other / "shared" / "runtender" / "settings.py~").write_text("what an editor keeps")
    again = write_bundle(tmp_path / "dist", other)
    assert again.name == bundle.name
    assert again.read_bytes() == bundle.read_bytes()


def test_other_code_is_another_name(bundle: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    shutil.copytree(ROOT / "shared", other / "shared")
    shutil.copytree(ROOT / "functions", other / "functions")
    for name in ("LICENSE", "pyproject.toml"):
        shutil.copyfile(ROOT / name, other / name)
    with (other / "shared" / "runtender" / "ids.py").open("a") as source:
        source.write("# another line\n")
    assert write_bundle(tmp_path / "dist", other).name != bundle.name


def test_the_entry_points_and_their_requirements_lie_at_the_top_and_the_package_beside_them() -> None:
    names = list(contents())
    assert [name for name in names if "/" not in name] == ["LICENSE", "main.py", "requirements.txt"]
    assert {name.split("/")[0] for name in names if "/" in name} == {"runtender"}


def test_nothing_is_in_it_that_no_entry_point_needs() -> None:
    inside = {name.split("/")[1] for name in contents() if name.startswith("runtender/")}
    assert inside & BUNDLE.LEFT_OUT == set()
    assert not [name for name in contents() if "test" in name or "__pycache__" in name]


def test_every_folder_and_file_of_the_package_is_in_it_or_left_out_by_name() -> None:
    package = ROOT / "shared" / "runtender"
    inside = {name.split("/")[1] for name in contents() if name.startswith("runtender/")}
    there = {path.name for path in package.iterdir() if path.suffix == ".py" or path.is_dir()} - {
        "__pycache__"
    }
    assert there - BUNDLE.LEFT_OUT == inside
    assert BUNDLE.LEFT_OUT - {"web"} <= there


# --- the requirements


def pinned() -> dict[str, str]:
    text = contents()["requirements.txt"].decode()
    return dict(re.findall(r"^([a-z0-9][\w.-]*)(?:\[[^]]*\])?==([^\s;]+)", text, re.MULTILINE))


def closure(asked: Iterable[str]) -> set[str]:
    """Return the names of all that these requirements bring along here, as their installed versions say."""
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(text) for text in asked]
    while waiting:
        requirement = waiting.pop()
        for extra in {"", *requirement.extras}:
            key = (canonicalize_name(requirement.name), extra)
            if key not in found:
                found.add(key)
                listed = map(Requirement, importlib.metadata.requires(requirement.name) or ())
                waiting += [
                    one for one in listed if one.marker is None or one.marker.evaluate({"extra": extra})
                ]
    return {name for name, _ in found}


def test_the_requirements_are_all_that_is_needed_in_the_tested_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = closure(project["dependencies"])
    pins = pinned()
    assert {name: pins.get(name) for name in needed} == {
        name: importlib.metadata.version(name) for name in needed
    }, "run `make lock`"


def test_a_requirement_that_nothing_here_needs_is_for_another_system() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    entries = re.sub(r"\\\n\s+", " ", contents()["requirements.txt"].decode()).splitlines()
    here = {
        canonicalize_name(one.name)
        for one in (Requirement(line.split(" --hash=")[0]) for line in entries if re.match(r"[a-z0-9]", line))
        if one.marker is None or one.marker.evaluate()
    }
    assert here - closure(project["dependencies"]) == set()


# --- served as in the cloud, from the unpacked zip, where nothing else is installed


@pytest.fixture(scope="module", params=["as tested", pytest.param("as installed", marks=pytest.mark.slow)])
def requirements_alone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what requirements.txt installs, and nothing else."""
    folder = tmp_path_factory.mktemp("site-packages")
    if request.param == "as installed":
        install(folder)
    else:
        link_tested_files(folder)
    return folder


def link_tested_files(folder: Path) -> None:
    """Take the files of the distributions in requirements.txt from this environment, as an installer left them there."""
    for name in pinned():
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system, see above
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and source.is_file():
                target = folder / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(source)


def install(folder: Path) -> None:
    """Let pip install requirements.txt anew, each package checked by its hash; skip where no registry answers."""
    lock = folder / "requirements.txt"
    lock.write_bytes(contents()["requirements.txt"])
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "--no-deps",
    ]
    ended = subprocess.run(
        [*command, "--target", str(folder), "--requirement", str(lock)],
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode and re.search(r"Connection|Max retries|Temporary failure|No matching", ended.stderr):
        pytest.skip(f"no registry can be reached: {ended.stderr.strip().splitlines()[-1]}")
    assert ended.returncode == 0, ended.stderr


@pytest.fixture
def serve(unpacked: Path, requirements_alone: Path, cloud: Any, google_services: Any) -> Iterator[Serve]:
    """Start functions-framework for an entry point; return what posts to it and tells the status."""
    start = (
        f"import sys; sys.path[:] = [{str(unpacked)!r}, {str(requirements_alone)!r}, *sys.path]; "
        "from functions_framework._cli import _cli; _cli()"
    )
    # No settings of this interpreter's, and no packages beside Python's own.
    python = [sys.executable, "-I", "-S", "-c", start]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FUNCTION_"))},
        "SF_BACKEND": "google",
        "FIRESTORE_EMULATOR_HOST": google_services.address,
        "PUBSUB_EMULATOR_HOST": google_services.address,
    }
    processes: list[subprocess.Popen[bytes]] = []

    def begin(target: str) -> Post:
        port = free_port()
        address = ["--source", "main.py", "--target", target, "--host", "127.0.0.1", "--port", str(port)]
        log = (cloud.tmp / f"{target}.log").open("wb")
        with log:
            processes.append(
                subprocess.Popen([*python, *address], cwd=unpacked, env=environment, stdout=log, stderr=log)
            )
        await_port(port, cloud.tmp / f"{target}.log")
        return lambda request=None: post(port, request)

    yield begin
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(PATIENCE_S)


def await_port(port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"nothing answers at port {port}:\n{log.read_text()}")


def post(port: int, request: Mapping[str, Any] | None) -> int:
    body = None if request is None else json.dumps(request["json"]).encode()
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/", data=body, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_unpacked_alone_it_takes_a_submit_and_puts_aside_what_cannot_be_read(
    serve: Serve, events: Any, google_services: Any
) -> None:
    submit = serve("on_submit")
    assert submit() == 405
    assert submit(events.classic(events.message(b"no JSON"))) == 204
    ((topic, body),) = google_services.published
    assert (topic.rpartition("/")[2], body) == ("sf-dead-letter", b"no JSON")
    assert submit(events.classic(events.message({"config": events.config}, message_id="m-2"))) == 204


def test_unpacked_alone_it_takes_markers_and_ticks(serve: Serve, events: Any) -> None:
    marker, tick = serve("on_marker"), serve("on_tick")
    assert marker({"json": {"no": "message"}}) == 204
    assert marker(events.classic(events.notification("runs/status/none/of/ours.json"))) == 204
    assert tick({"json": {"no": "message"}}) == 204
    assert tick(events.classic(events.message({}))) == 204


def test_nothing_that_only_people_use_can_be_loaded_there(unpacked: Path, requirements_alone: Path) -> None:
    tried = "import importlib.util as u, sys; sys.path[:0] = sys.argv[1:3]; print([n for n in sys.argv[3:] if u.find_spec(n)])"
    names = [
        "runtender.engine",
        "flask",
        "click",
        "rich",
        "pandas",
        "runtender.cli",
        "runtender.local",
        "pytest",
    ]
    command = [sys.executable, "-I", "-S", "-c", tried, str(unpacked), str(requirements_alone), *names]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "runtender.engine" in said
    assert not [
        name for name in ("rich", "pandas", "runtender.cli", "runtender.local", "pytest") if name in said
    ]

"""Rules for the repository: what may lie in it, what its locks promise, how large its parts may grow."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import runtender

ROOT = Path(__file__).resolve().parents[2]

BUILD = "tests/build-requirements.txt"
TESTED = "tests/requirements.txt"
DEPLOYED = "functions/requirements.txt"
WORKER = "docker/worker/requirements.txt"
RAY = "docker/ray/requirements.txt"
LOCKS = (BUILD, TESTED, DEPLOYED, WORKER, RAY)

TOP_LEVEL = {
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "docker",
    "functions",
    "infra",
    "pyproject.toml",
    "shared",
    "tests",
}
MAX_FILE_BYTES = 1_000_000
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60

# Addresses that hold on one network or machine only, written so that this file does not contain them.
INDEXES = r"pypi\.(?:org|python)|pythonhosted\.|registry\.npm|(?:deb|security)\.debian\."
DEVELOPERS_FOLDERS = r"(?<![\w.~}-])/(?:Users|work)/"
FORBIDDEN = re.compile(f"{INDEXES}|{DEVELOPERS_FOLDERS}")


@cache
def tracked_files() -> tuple[str, ...]:
    """List the files that git tracks, or will once they are added."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(sorted({name for name in listing.split("\0") if name and (ROOT / name).is_file()}))


def product_modules() -> list[str]:
    return [name for name in tracked_files() if name.endswith(".py") and not name.startswith("tests/")]


@cache
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@dataclass(frozen=True, kw_only=True)
class Pin:
    """One locked version; a package may have several, one per Python version."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        return str(self.requirement.specifier).removeprefix("==")


@cache
def pins(lock: str) -> tuple[Pin, ...]:
    lines = re.sub(r"\\\n\s+", " ", (ROOT / lock).read_text()).splitlines()
    entries = [line for line in lines if line and not line.lstrip().startswith("#")]
    return tuple(
        Pin(
            requirement=Requirement(entry.split(" --hash=")[0]),
            hashes=tuple(re.findall(r"--hash=(\S+)", entry)),
        )
        for entry in entries
    )


def direct_dependencies(lock: str) -> Iterator[Requirement]:
    """Yield what pyproject.toml asks for in this lock."""
    base: list[str] = pyproject()["project"]["dependencies"]
    extras: dict[str, list[str]] = pyproject()["project"]["optional-dependencies"]
    groups: dict[str, list[str]] = pyproject()["dependency-groups"]
    asked = {
        BUILD: groups["build"],
        TESTED: [*base, *chain.from_iterable(extras.values()), *groups["test"], *groups["check"]],
        DEPLOYED: base,
        WORKER: extras["worker"],
        RAY: groups["ray"],
    }[lock]
    for text in asked:
        requirement = Requirement(text)
        if requirement.name != pyproject()["project"]["name"]:
            yield requirement


def test_the_package_under_test_is_this_checkouts() -> None:
    assert Path(runtender.__file__).is_relative_to(ROOT), (
        "the environment is another checkout's; run `make clean`"
    )


def test_only_known_names_stand_at_the_top() -> None:
    top = {name.split("/")[0] for name in tracked_files()}
    assert {name for name in top if not name.startswith(".")} <= TOP_LEVEL


def test_no_file_is_large() -> None:
    assert [name for name in tracked_files() if (ROOT / name).stat().st_size > MAX_FILE_BYTES] == []


def test_nothing_names_an_address_that_holds_only_here() -> None:
    found = []
    for name in tracked_files():
        text = (ROOT / name).read_bytes().decode("utf-8", "replace")
        found += [f"{name}: {match.group()}" for match in FORBIDDEN.finditer(text)]
    assert found == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_what_pyproject_asks_for(lock: str) -> None:
    stale = [
        str(requirement)
        for requirement in direct_dependencies(lock)
        if not any(
            pin.name == canonicalize_name(requirement.name) and requirement.specifier.contains(pin.version)
            for pin in pins(lock)
        )
    ]
    assert stale == [], f"{lock} is older than pyproject.toml; run `make lock`"


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_one_version_by_hash(lock: str) -> None:
    loose = [
        str(pin.requirement)
        for pin in pins(lock)
        if not re.fullmatch(r"==[^,*]+", str(pin.requirement.specifier))
        or not pin.hashes
        or not all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for value in pin.hashes)
    ]
    assert loose == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address_and_no_folder(lock: str) -> None:
    addresses = r"\w+://|--(?:extra-)?index-url|--find-links|--trusted-host|\s@\s|^\s*-e\b|file:|[\s=]/\w+"
    assert re.findall(addresses, (ROOT / lock).read_text(), re.MULTILINE) == []


@pytest.mark.parametrize("lock", [DEPLOYED, WORKER])
def test_what_is_deployed_is_what_was_tested(lock: str) -> None:
    tested = {(pin.name, pin.version, pin.hashes) for pin in pins(TESTED)}
    assert {(pin.name, pin.version, pin.hashes) for pin in pins(lock)} <= tested


@pytest.mark.parametrize(
    ("lock", "foreign"),
    [
        pytest.param(DEPLOYED, {"pandas", "pyarrow", "rich", "statsforecast", "uv"}, id="functions"),
        pytest.param(WORKER, {"functions-framework", "google-cloud-firestore", "uv"}, id="worker"),
        pytest.param(TESTED, {"torch", "ray"}, id="tests"),
    ],
)
def test_a_lock_stays_free_of_what_its_place_does_not_need(lock: str, foreign: set[str]) -> None:
    assert foreign & {pin.name for pin in pins(lock)} == set()


def test_every_dependency_says_what_it_is_for() -> None:
    dependency = re.compile(r'^  "[a-z][\w.-]*(?:\[[\w,]+\])?[<>=~!].*$', re.MULTILINE)
    lines = dependency.findall((ROOT / "pyproject.toml").read_text())
    assert len(lines) >= len(pyproject()["project"]["dependencies"])
    assert [line for line in lines if "#" not in line] == []


def test_a_file_tells_one_story() -> None:
    long = []
    for name in product_modules():
        lines = [line for line in (ROOT / name).read_text().splitlines() if line.strip()]
        if len(lines) > MAX_FILE_LINES:
            long.append(f"{name}: {len(lines)} lines")
    assert long == []


def test_a_function_fits_a_screen() -> None:
    long = []
    for name in product_modules():
        for node in ast.walk(ast.parse((ROOT / name).read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    long.append(f"{name}: {node.name} has {lines} lines")
    assert long == []


def test_test_folders_are_no_packages() -> None:
    assert [
        name for name in tracked_files() if name.startswith("tests/") and name.endswith("__init__.py")
    ] == []

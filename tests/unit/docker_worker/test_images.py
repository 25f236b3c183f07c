"""The images, without an engine that could build them: what they copy is there, and their install steps do what they should.

The slow test runs the `RUN` lines of the build stage, word for word but for the folders, in a folder of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
DOCKERFILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docker").rglob("Dockerfile*"))
EXACT = re.compile(r"[\w./-]+:\d[\w.-]*\d[\w.-]*|[\w./-]+@sha256:[0-9a-f]{64}")


def instructions(name: str) -> list[tuple[str, str]]:
    """Return a Dockerfile's instructions with their arguments, lines joined and comments taken out."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines()) if word]


def pins(name: str) -> dict[str, str]:
    return dict(
        re.findall(r"^([a-z0-9][\w.-]*)(?:\[[^]]*\])?==([^\s;]+)", (ROOT / name).read_text(), re.MULTILINE)
    )


@pytest.mark.parametrize("name", DOCKERFILES)
def test_an_image_starts_from_what_cannot_change_much(name: str) -> None:
    known: set[str] = set()
    for word, rest in instructions(name):
        if word == "FROM":
            image, _, stage = rest.partition(" AS ")
            # A stage of its own, or what whoever builds it says.
            assert image in known or image.startswith("${") or EXACT.fullmatch(image), image
            known.add(stage)


@pytest.mark.parametrize("name", DOCKERFILES)
def test_an_image_runs_as_nobody_in_particular(name: str) -> None:
    words = [(word, rest) for word, rest in instructions(name) if word in {"FROM", "USER"}]
    assert words[-1] == ("USER", "1099:1099")


@pytest.mark.parametrize("name", DOCKERFILES)
def test_what_an_image_copies_from_the_checkout_is_there(name: str) -> None:
    copied = [
        rest.split()[:-1]
        for word, rest in instructions(name)
        if word == "COPY" and not rest.startswith("--from")
    ]
    missing = [source for sources in copied for source in sources if not (ROOT / source).exists()]
    assert missing == []


def test_the_two_variants_of_the_worker_have_the_same_libraries() -> None:
    stages = [
        rest.partition(" AS ")[::2]
        for word, rest in instructions("docker/worker/Dockerfile")
        if word == "FROM"
    ]
    assert {"cpu", "cuda"} <= {stage for _, stage in stages}
    assert ("cpu", "cuda") in stages
    assert stages[-1] == ("${VARIANT}", "")


def test_ray_is_laid_over_the_workers_libraries_without_changing_one() -> None:
    worker, ray = pins("docker/worker/requirements.txt"), pins("docker/ray/requirements.txt")
    assert "ray" in ray
    assert {name: ray[name] for name in worker.keys() & ray.keys()} == {
        name: worker[name] for name in worker.keys() & ray.keys()
    }


def test_the_emulators_listen_on_this_machine_alone_where_the_tests_look_for_them() -> None:
    services = compose()["services"]
    assert services.keys() == {"firestore", "pubsub"}
    for service in services.values():
        assert re.search(r"--host-port=127\.0\.0\.1:\d+", service["command"])
        assert EXACT.fullmatch(service["image"])


def test_cloud_build_builds_the_dockerfiles_that_are_here() -> None:
    text = (ROOT / "docker" / "cloudbuild.yaml").read_text()
    assert set(re.findall(r"--file[= ](\S+)", text)) == set(DOCKERFILES)
    assert set(re.findall(r"\$\{(_\w+)\}", text)) == yaml.safe_load(text)["substitutions"].keys()


def compose() -> Any:
    return yaml.safe_load((ROOT / "docker" / "emulators" / "compose.yaml").read_text())


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_workers_install_steps_lead_to_a_worker_and_its_libraries(tmp_path: Path) -> None:
    source, venv = tmp_path / "src", tmp_path / "venv"
    source.mkdir()
    # An image has one interpreter, in which the first step installs; here that is one of its own as well.
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "base"], check=True)
    path = f"{tmp_path / 'base' / 'bin'}:/usr/bin:/bin"
    for word, rest in build_stage():
        if word == "COPY":
            *sources, target = rest.split()
            folder = source / target if target.endswith("/") else (source / target).parent
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-r", *(ROOT / one for one in sources), source / target], check=True)
        elif word == "RUN":
            command = rest.replace("/opt/venv", str(venv))
            ended = subprocess.run(
                ["bash", "-ceu", command],
                cwd=source,
                env={"PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            if ended.returncode and re.search(r"Connection|Max retries|Temporary failure", ended.stderr):
                pytest.skip(f"no registry can be reached: {ended.stderr.strip().splitlines()[-1]}")
            assert ended.returncode == 0, ended.stderr[-2000:]
    said = subprocess.run(
        [venv / "bin" / "python", "-c", "import runtender.worker.bootstrap, statsforecast, pyarrow; print('ready')"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.stdout == "ready\n", said.stderr
    listed = subprocess.run(
        [venv / "bin" / "pip", "list", "--format", "freeze"], capture_output=True, text=True, check=True
    )
    assert "functions-framework" not in listed.stdout


def build_stage() -> list[tuple[str, str]]:
    """Return the instructions between the first FROM and the second."""
    found = instructions("docker/worker/Dockerfile")
    starts = [place for place, (word, _) in enumerate(found) if word == "FROM"]
    return found[starts[0] + 1 : starts[1]]

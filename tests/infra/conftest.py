"""What the tests of the Terraform files share: the two scripts of `infra/`, and Terraform itself where it is installed.

Terraform runs on copies, with a stand-in for Google's provider (`schema_provider.py`): no network, no plug-in, no project.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
INFRA = ROOT / "infra"
OLDEST = (1, 9)

_VALUES = """
mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
}

variables {
  project_id    = "plane-tests"
  region        = "us-central1"
  bundle        = "./permissions.json"
  cells_prefix  = "gs://warehouse/forecasts/artifacts"
  input_buckets = ["panels"]
  secrets       = ["projects/plane-tests/secrets/token"]
  settings      = { SF_GKE_CLUSTER = "standing" }
  kms_key       = "projects/plane-tests/locations/us-central1/keyRings/ring/cryptoKeys/key"
  worker = {
    repository            = "projects/plane-tests/locations/us-central1/repositories/sf-workers"
    service_account_email = "sf-worker@plane-tests.iam.gserviceaccount.com"
    subnetworks           = { us-central1 = "projects/plane-tests/regions/us-central1/subnetworks/sf-workers" }
  }
}

run "values" {}
"""


def _script(name: str) -> ModuleType:
    """Import a script of `infra/`, which is no package."""
    spec = importlib.util.spec_from_file_location(f"infra_{name}", INFRA / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its own module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def checker() -> ModuleType:
    """`infra/check_modules.py`."""
    return _script("check_modules")


@pytest.fixture(scope="session")
def indexes() -> ModuleType:
    """`infra/firestore_indexes.py`."""
    return _script("firestore_indexes")


@pytest.fixture(scope="session")
def schema() -> Mapping[str, Any]:
    """The provider's arguments."""
    document: Mapping[str, Any] = json.loads(
        Path(__file__).with_name("provider_schema.json").read_text(encoding="utf-8")
    )
    return document


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of `infra/` to break."""
    return _copy_to(tmp_path)


def _copy_to(folder: Path) -> Path:
    target = folder / "infra"
    shutil.copytree(INFRA, target, ignore=shutil.ignore_patterns(".terraform*", "__pycache__", "*.tfstate*"))
    return target


@dataclass(frozen=True)
class Terraform:
    """Terraform with the stand-in provider."""

    binary: str
    environment: Mapping[str, str]

    def run(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a folder; its output holds everything that it printed."""
        return subprocess.run(
            [self.binary, *arguments],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=100,
        )

    def ready(self, folder: Path) -> Path:
        """Link a folder's modules, so that it can be looked at."""
        done = self.run(folder, "init", "-backend=false", "-no-color")
        assert done.returncode == 0, done.stdout
        return folder


def _find_terraform() -> str:
    binary = shutil.which("terraform")
    if binary is None:
        pytest.skip("Terraform is not installed: its own checks of infra/ are left out")
    environment = {**os.environ, "CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": os.devnull}
    told = subprocess.run(
        [binary, "version", "-json"], env=environment, capture_output=True, text=True, check=True
    )
    version: str = json.loads(told.stdout)["terraform_version"]
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        pytest.skip(f"Terraform {version} is older than what infra/ asks for")
    return binary


@pytest.fixture(scope="session")
def terraform() -> Iterator[Terraform]:
    """Terraform, attached to the stand-in; skips where it is not installed."""
    binary = _find_terraform()
    command = [sys.executable, str(Path(__file__).with_name("schema_provider.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as provider:
        assert provider.stdin is not None
        assert provider.stdout is not None
        try:
            environment = {
                **os.environ,
                "CHECKPOINT_DISABLE": "1",
                # Each command lives for seconds: a quarter of them would go into tidying its memory.
                "GOGC": "400",
                "TF_CLI_CONFIG_FILE": os.devnull,
                "TF_REATTACH_PROVIDERS": provider.stdout.readline(),
            }
            yield Terraform(binary=binary, environment=environment)
        finally:
            provider.stdin.close()
            provider.wait(timeout=10)


@pytest.fixture(scope="session")
def values(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Mapping[str, Any]]:
    """What the control plane's resources get, by their addresses; what only Google could know is made up.

    Asked for once, by whichever test process comes first: Terraform takes seconds for it.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    kept = shared / "terraform_values.json"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            told = _values(request.getfixturevalue("terraform"), tmp_path_factory.mktemp("values"))
            kept.write_text(json.dumps(told), encoding="utf-8")
    found: Mapping[str, Mapping[str, Any]] = json.loads(kept.read_text(encoding="utf-8"))
    return found


def _values(terraform: Terraform, folder: Path) -> Mapping[str, Mapping[str, Any]]:
    module = _copy_to(folder) / "modules/control-plane"
    (module / "tests/values.tftest.hcl").write_text(_VALUES)
    told = terraform.run(
        terraform.ready(module), "test", "-json", "-verbose", "-filter=tests/values.tftest.hcl"
    )
    assert told.returncode == 0, told.stdout
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    (state,) = (line["test_state"] for line in lines if line.get("type") == "test_state")
    return {
        resource["address"]: {**resource["values"], "index": resource.get("index")}
        for resource in state["root_module"]["resources"]
    }

"""What each entry point may load: cold start is a feature, and every module here is paid for on each scale-up.

Each entry point is loaded as deployed, on the backend `google`, in a process of its own, and serves one event. Firestore's
place is taken by a gRPC service that knows of nothing. What functions-framework loads by itself is not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runtender.ids import job_key, marker_object

REPOSITORY = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("serve_one_event.py")
EMPTY_FUNCTION = """
import functions_framework

@functions_framework.http
def serve(request):
    return "", 204
"""

# Firestore's client and what it brings along, which is also all that signed calls over HTTP need.
CLIENTS = frozenset(
    """
    _cffi_backend certifi charset_normalizer cryptography google._upb google.api google.api_core google.auth
    google.cloud._helpers google.cloud.client google.cloud.exceptions google.cloud.firestore google.cloud.firestore_v1
    google.cloud.location google.longrunning google.oauth2 google.protobuf google.rpc google.type grpc grpc_status idna
    proto requests typing_extensions urllib3
    """.split()
)
PLANE = frozenset(
    """
    runtender runtender.capacity runtender.decide runtender.engine runtender.errors runtender.gcp runtender.ids
    runtender.logs runtender.model runtender.observed runtender.ports runtender.redaction runtender.runtimes runtender.settings
    runtender.wire runtender.wiring runtender.worker
    """.split()
)
MAY_LOAD = {
    "on_submit": CLIENTS | PLANE | {"runtender.forecast"},
    "on_marker": CLIENTS | PLANE,
    "on_tick": CLIENTS | PLANE,
}

# Named although no list above allows them, so that nobody adds them there without a thought.
NEVER = """
    click googleapiclient google.cloud.compute google.cloud.compute_v1 google.cloud.pubsub google.cloud.pubsub_v1
    google.cloud.storage google.pubsub_v1 kubernetes numpy pandas pyarrow rich runtender.cli runtender.local yaml
""".split()
ONLY_ON_SUBMIT = ["runtender.engine.accept", "runtender.engine.intake", "runtender.forecast.plan"]


@pytest.fixture
def google_plane(cloud, google_services, monkeypatch):
    """The environment of a deployed plane; its buckets and machines are the local cloud's."""
    monkeypatch.setenv("SF_BACKEND", "google")
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", google_services.address)


@pytest.fixture(scope="module")
def floor(tmp_path_factory):
    """What the framework loads by itself."""
    empty = tmp_path_factory.mktemp("empty") / "empty.py"
    empty.write_text(EMPTY_FUNCTION)
    return _serve(empty, "serve", "{}")


@pytest.fixture
def loaded_by(google_plane, floor, events):
    """Return what serving one event loads beyond the framework: names of modules that are not Python's own."""

    def load(target):
        name = marker_object(
            job_key("flights-0123456789ab", "statistical", 1), "0123456789abcdef", 0, "started"
        )
        requests = {
            "on_submit": events.message({"config": events.config}),
            "on_marker": events.notification(name),
            "on_tick": events.message({}),
        }
        request = json.dumps(events.classic(requests[target])["json"])
        return _serve(REPOSITORY / "functions" / "main.py", target, request) - floor

    return load


def _serve(source: Path, target: str, request: str) -> set[str]:
    command = [sys.executable, str(CHILD), str(source), target, request]
    child = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert child.returncode == 0, child.stderr
    *log, answer = child.stdout.splitlines()
    status, loaded = json.loads(answer)
    assert status == 204, "\n".join(log) + child.stderr
    ours = str(REPOSITORY / "shared")
    return {name for name, file in loaded.items() if "site-packages" in file or file.startswith(ours)}


def _package(module: str) -> str:
    """The name under which a module stands in the lists: Google's and our own packages are named one by one."""
    depth = {"google": 2, "runtender": 2}.get(module.partition(".")[0], 1)
    if module.startswith("google.cloud."):
        depth = 3
    return ".".join(module.split(".")[:depth])


@pytest.mark.parametrize("target", MAY_LOAD)
def test_an_entry_point_loads_what_it_may_and_nothing_else(loaded_by, target):
    modules = loaded_by(target)
    assert {_package(module) for module in modules} - MAY_LOAD[target] == set()
    assert [name for name in NEVER if name in modules] == []
    assert [name for name in ONLY_ON_SUBMIT if name in modules] == (
        ONLY_ON_SUBMIT if target == "on_submit" else []
    )

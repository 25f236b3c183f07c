"""The startup script, run for real by bash: stand-ins for the tools of the guest, a local server for Google's APIs.

Nothing of the script is edited. It finds the server through curl's own settings, exactly as in the local cloud.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from runtender.ids import marker_object
from runtender.local.http import (
    DROPPED,
    HttpRequest,
    HttpResponse,
    LocalAuthority,
    google_error,
    json_response,
    serve,
)
from runtender.model import Job, Resource
from runtender.runtimes.gce_script import startup_script
from runtender.settings import Settings

STANDINS = Path(__file__).parent / "standins"
TOOLS = (
    "cos-extensions", "docker-credential-gcr", "mount", "mountpoint", "nvidia-smi", "poweroff", "shutdown", "systemctl",
)  # fmt: skip
# Two hundred times faster than a real VM's waits: a pause is 5 to 150 ms, a log is uploaded every 300 ms.
SCALE = 200.0
# Far above what any of these takes on a busy machine; the script itself has no such bound.
PATIENCE_S = 20.0


@dataclass(kw_only=True)
class Cloud:
    """The three APIs that a guest talks to, and what it told them. `planned` answers come before proper ones."""

    objects: dict[str, bytes] = field(default_factory=dict)
    planned: dict[str, list[HttpResponse]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    buckets: frozenset[str] = frozenset({"status", "code"})
    preempted: threading.Event = field(default_factory=threading.Event)
    secrets: dict[str, str] = field(default_factory=dict)
    tokens: int = 0
    fresh_tokens: set[str] = field(default_factory=set)
    on_call: Callable[[str], object] = len

    def answer(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith("/computeMetadata/"):
            return self._metadata(request)
        # A token is good for one call, as if it had run out by the next.
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.fresh_tokens:
            return google_error(401, "authError", "Invalid Credentials")
        self.fresh_tokens.remove(token)
        name = request.query.get("name") or request.segments[-1]
        self.calls.append(f"{request.method} {name.rpartition('/')[2]}")
        self.on_call(self.calls[-1])
        for part, answers in self.planned.items():
            if part in self.calls[-1] and answers:
                return answers.pop(0)
        if request.path.startswith("/v1/projects/"):
            return self._secret(request.path.removeprefix("/v1/").removesuffix(":access"))
        return (
            self._instance(request) if request.path.startswith("/compute/") else self._object(request, name)
        )

    def _secret(self, version: str) -> HttpResponse:
        if version not in self.secrets:
            return google_error(403, "forbidden", f"no secretmanager.versions.access on {version}")
        data = base64.b64encode(self.secrets[version].encode()).decode()
        return json_response(200, {"name": version, "payload": {"data": data, "dataCrc32c": "1"}})

    def _metadata(self, request: HttpRequest) -> HttpResponse:
        if request.headers.get("Metadata-Flavor") != "Google":
            return HttpResponse(status=403)
        if request.path.endswith("/token"):
            self.tokens += 1
            token = f"secret-{self.tokens}"
            self.fresh_tokens.add(token)
            return json_response(200, {"access_token": token, "expires_in": 3599})
        if request.query.get("wait_for_change") == "true":
            self.preempted.wait(PATIENCE_S)
        return HttpResponse(status=200, body=b"TRUE" if self.preempted.is_set() else b"FALSE")

    def _instance(self, request: HttpRequest) -> HttpResponse:
        assert request.path == "/compute/v1/projects/p/zones/us-central1-b/instances/" + request.segments[-1]
        return json_response(200, {"name": "operation-1", "status": "RUNNING"})

    def _object(self, request: HttpRequest, name: str) -> HttpResponse:
        bucket = request.segments[request.segments.index("b") + 1]
        if bucket not in self.buckets:
            return google_error(404, "notFound", "The specified bucket does not exist.")
        if request.method == "GET":
            return (
                json_response(200, {"name": name})
                if name in self.objects
                else google_error(404, "notFound", "none")
            )
        assert request.query["ifGenerationMatch"] == "0"
        if name in self.objects:
            return google_error(412, "conditionNotMet", "it exists")
        self.objects[name] = request.body
        return json_response(200, {"name": name})

    def settle(self, name: str) -> None:
        """Store an object as the plane does."""
        self.objects[name] = b"{}"

    def read(self, uri: str) -> bytes:
        return self.objects[uri.removeprefix("gs://code/")]

    def stored(self, stage: str) -> bytes:
        """Return the one marker object of that stage."""
        (body,) = (body for name, body in self.objects.items() if name.endswith(f"/0.{stage}.json"))
        return body

    def marker(self, stage: str) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.stored(stage))
        return body

    @property
    def terminal(self) -> dict[str, Any]:
        return self.marker("terminal")

    @property
    def logs(self) -> list[bytes]:
        return [self.objects[name] for name in sorted(self.objects) if name.endswith(".log")]


@dataclass(kw_only=True)
class Machine:
    """A VM as the script sees it, in a folder."""

    folder: Path
    environment: dict[str, str]
    cloud: Cloud
    nonce: str
    terminal_object: str
    process: subprocess.Popen[bytes] | None = None

    def boot(self, script: str) -> None:
        path = self.folder / "script.sh"
        path.write_text(script, encoding="utf-8")
        with (self.folder / "console").open("ab") as console:
            self.process = subprocess.Popen(
                ["bash", path], env=self.environment, stdin=subprocess.DEVNULL, stdout=console,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def run(self, script: str) -> None:
        """Boot and wait until the script has left."""
        self.boot(script)
        self.wait()

    def wait(self) -> None:
        assert self.process is not None
        self.process.wait(PATIENCE_S)

    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"never happened; the console says:\n{self.console}"
            time.sleep(0.02)

    def tell(self, name: str, text: str = "") -> None:
        """Steer a stand-in: `docker` by `pull.fails` and the like, any other tool by `NAME.says` and `NAME.fails`."""
        (self.folder / "standins" / name).write_text(text, encoding="utf-8")

    @property
    def console(self) -> str:
        return (self.folder / "console").read_text(encoding="utf-8", errors="replace")

    @property
    def calls(self) -> list[str]:
        """What was called on this machine, in order, with its words."""
        calls = self.folder / "standins" / "calls"
        return calls.read_text(encoding="utf-8").replace("'", "").splitlines() if calls.exists() else []

    def called(self, start: str) -> list[str]:
        return [call for call in self.calls if call.startswith(start)]

    def terminate(self) -> None:
        """Signal the shell alone: what it started is not told."""
        assert self.process is not None
        self.process.terminate()

    def end_container(self) -> None:
        """Stop the container from outside, as docker's own end does; nobody tells the shell."""
        os.kill(int((self.folder / "standins" / "container" / "pid").read_text()), signal.SIGTERM)

    def lose_power(self) -> None:
        """End the script and the container at once. Their disk stays."""
        self.close()

    def close(self) -> None:
        """Let nothing survive: the script and its children, the container and its children."""
        if self.process is not None:
            _kill_group(self.process.pid)
            self.process.wait(PATIENCE_S)
        session = self.folder / "standins" / "container" / "session"
        if session.exists():
            _kill_group(int(session.read_text()))


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.fixture(scope="session")
def a_machine(
    tmp_path_factory: pytest.TempPathFactory, a_job: Callable[..., Job], a_row: Callable[..., Resource]
) -> Callable[[Path], AbstractContextManager[Machine]]:
    """Return what makes a machine in a folder, with a cloud of its own, and lets nothing of it survive."""
    authority = LocalAuthority.create(tmp_path_factory.mktemp("authority"))
    nonce = a_row().nonce
    terminal = marker_object(a_job().job_key, nonce, 0, "terminal")

    @contextmanager
    def a_machine(folder: Path) -> Iterator[Machine]:
        cloud = Cloud()
        _install_tools(folder)
        with serve(cloud.answer, tls=authority) as apis, serve(cloud.answer) as metadata:
            machine = Machine(
                folder=folder,
                environment=_environment(folder, authority, apis.port, metadata.port),
                cloud=cloud,
                nonce=nonce,
                terminal_object=terminal,
            )
            try:
                yield machine
            finally:
                cloud.preempted.set()
                machine.close()

    return a_machine


def _install_tools(folder: Path) -> None:
    for name in ("bin", "standins", "dev"):
        (folder / name).mkdir()
    for name in ("docker", "curl"):
        (folder / "bin" / name).symlink_to(STANDINS / name)
    for name in TOOLS:
        (folder / "bin" / name).symlink_to(STANDINS / "tool")
    (folder / "standins" / "systemctl.says").write_text("running\n")


def _environment(folder: Path, authority: LocalAuthority, apis: int, metadata: int) -> dict[str, str]:
    """The script's environment, and curl's settings that lead to the ports of the cloud."""
    services = ("storage", "compute", "secretmanager")
    hosts = [f"{service}.googleapis.com:443:127.0.0.1:{apis}" for service in services]
    hosts.append(f"metadata.google.internal:80:127.0.0.1:{metadata}")
    settings = [f'connect-to = "{host}"' for host in hosts]
    settings += [f'cacert = "{authority.ca_file}"', 'noproxy = "*"']
    (folder / ".curlrc").write_text("\n".join(settings))
    return {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "CURL_HOME": str(folder),
        "REAL_CURL": shutil.which("curl") or "curl",
        "STANDINS": str(folder / "standins"),
        "SF_GUEST_STATE": str(folder / "state"),
        "SF_GUEST_DEVICES": str(folder / "dev"),
    }


@pytest.fixture
def machine(
    tmp_path: Path, a_machine: Callable[[Path], AbstractContextManager[Machine]]
) -> Iterator[Machine]:
    with a_machine(tmp_path) as machine:
        yield machine


@pytest.fixture(scope="session")
def ordinary(
    tmp_path_factory: pytest.TempPathFactory,
    a_machine: Callable[[Path], AbstractContextManager[Machine]],
    script: Callable[..., str],
) -> Machine:
    """A machine after a run without anything special, to be looked at only."""
    with a_machine(tmp_path_factory.mktemp("ordinary")) as machine:
        machine.run(script("true", env={"PLAIN": "seen"}))
    return machine


@pytest.fixture(scope="session")
def script(
    a_task: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings
) -> Callable[..., str]:
    """Return a renderer: the script of a VM whose container runs a line of bash."""

    def render(line: str, *, self_delete: bool = True, scale: float = SCALE, **plan: Any) -> str:
        fast = replace(settings, time_scale=scale, guest_self_delete=self_delete)
        return startup_script(a_task("bash", "-c", line, **plan), a_row(), fast)

    return render


@pytest.fixture
def busy() -> HttpResponse:
    return google_error(503, "backendError", "try again")


@pytest.fixture
def dropped() -> HttpResponse:
    return DROPPED


@pytest.fixture
def exists() -> HttpResponse:
    return google_error(412, "conditionNotMet", "it exists")


@pytest.fixture
def no_bucket() -> HttpResponse:
    return google_error(404, "notFound", "The specified bucket does not exist.")


@pytest.fixture
def stale_token() -> HttpResponse:
    return google_error(401, "authError", "Invalid Credentials")


@pytest.fixture
def may_not_create() -> HttpResponse:
    return google_error(403, "forbidden", "worker does not have storage.objects.create access")


@pytest.fixture
def may_not_replace() -> HttpResponse:
    return google_error(403, "forbidden", "worker does not have storage.objects.delete access")

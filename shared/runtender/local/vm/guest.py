"""What a simulated machine is fitted out with before it boots: its folders, commands, script and environment.

The startup script runs unedited. That it reaches the local cloud instead of Google is curl's configuration; that it mounts
nothing and switches nothing off is the PATH.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import runtender
from runtender.local.compute.events import Booted
from runtender.local.vm.layout import MachineFacts, MachineHome

PACKAGE_ROOT = str(Path(runtender.__file__).resolve().parents[1])
_STAND_INS = Path(__file__).parent / "standins"
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """Where the local cloud answers: TLS ports for the hosts that scripts name, a plain URL for the storage client."""

    storage_tls_port: int
    compute_tls_port: int
    secrets_tls_port: int
    storage_url: str
    ca_file: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerEnvironment:
    """What stands for the worker image: an interpreter with the worker's packages, and what the image sets.

    `images` are shell patterns of the images that can be pulled; None: all but those named `missing`.
    """

    python: str = sys.executable
    variables: Mapping[str, str] | None = None
    images: tuple[str, ...] | None = None


def isolated_python(module: str) -> list[str]:
    """Return how a program of ours is started inside a machine or a pod: the module's `main`, with the arguments.

    Without site-packages it starts in a few milliseconds, and isolated no setting of the user's reaches it. It is imported,
    because what `-m` loads to find a module would cost half as much again.
    """
    path = f"import sys; sys.path.insert(0, {PACKAGE_ROOT!r})"
    run = f"{path}; from {module} import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-I", "-S", "-c", run]


def fit_out(
    home: MachineHome,
    machine: Booted,
    *,
    network: Network,
    metadata_port: int,
    worker: WorkerEnvironment,
    scale: float,
) -> None:
    """Prepare the folder of a machine for its next boot. What an earlier boot left in it stays."""
    home.make()
    _install_commands(home)
    home.curlrc.write_text(_curlrc(network, metadata_port), encoding="utf-8")
    if (script := machine.metadata.get("startup-script")) is not None:
        home.script.write_text(script, encoding="utf-8")
    home.write_facts(
        MachineFacts(
            name=machine.name,
            python=sys.executable,
            package_root=PACKAGE_ROOT,
            worker_python=worker.python,
            worker_environment={
                "PYTHONUNBUFFERED": "1",
                "STORAGE_EMULATOR_HOST": network.storage_url,
                "GCE_METADATA_HOST": f"127.0.0.1:{metadata_port}",
                **(worker.variables or {}),
            },
            images=worker.images,
            gpus=machine.gpus,
            grace_s=120.0 / scale,
            container_grace_s=10.0 / scale,
        )
    )


def machine_command(home: MachineHome) -> list[str]:
    """Return how the machine's own process is started."""
    return [*isolated_python("runtender.local.vm.machine"), str(home.root)]


def machine_environment(home: MachineHome) -> dict[str, str]:
    """Return what the machine's processes find in their environment, and nothing of the caller's."""
    return {
        "PATH": f"{home.bin}:{_SYSTEM_PATH}",
        "HOME": str(home.tmp),
        "LANG": "C.UTF-8",
        "TMPDIR": str(home.tmp),
        "CURL_HOME": str(home.curlrc.parent),
        "SF_GUEST_STATE": str(home.var),
        "SF_GUEST_DEVICES": str(home.dev),
    }


def _install_commands(home: MachineHome) -> None:
    for stand_in in _STAND_INS.iterdir():
        target = home.bin / stand_in.name
        shutil.copyfile(stand_in, target)
        target.chmod(0o755)
    docker = home.bin / "docker"
    docker.write_text(
        _launcher([*isolated_python("runtender.local.vm.docker.cli"), str(home.root)]), encoding="utf-8"
    )
    docker.chmod(0o755)


def _launcher(command: Sequence[str]) -> str:
    return f'#!/bin/sh\nexec {" ".join(quote(word) for word in command)} "$@"\n'


def _curlrc(network: Network, metadata_port: int) -> str:
    places = {
        "storage.googleapis.com:443": network.storage_tls_port,
        "compute.googleapis.com:443": network.compute_tls_port,
        "secretmanager.googleapis.com:443": network.secrets_tls_port,
        "metadata.google.internal:80": metadata_port,
        "169.254.169.254:80": metadata_port,
    }
    redirects = [f'connect-to = "{place}:127.0.0.1:{port}"' for place, port in places.items()]
    return "\n".join([*redirects, f'cacert = "{network.ca_file}"', 'noproxy = "*"', ""])

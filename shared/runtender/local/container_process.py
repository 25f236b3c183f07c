"""The main process of a container, without a container: what both simulated machines and simulated pods run.

The image is this computer's own worker environment. Its interpreter stands for the paths that the worker image has, and its
variables for those that image and cloud set. Standard library only: it runs inside machines and pods, where the start-up time
of an interpreter counts.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from runtender.local.vm.processes import die_with_parent

# Paths of the worker image that are not on this machine.
_WORKER_PYTHONS = frozenset({"/opt/venv/bin/python", "/opt/venv/bin/python3", "python", "python3"})


def start_container(
    argv: Sequence[str],
    *,
    python: str,
    environment: Mapping[str, str],
    hostname: str,
    stdout: int | None,
    stderr: int | None,
) -> subprocess.Popen[bytes]:
    """Start it in the working folder, which is the container's file system and has a `tmp`; raises OSError.

    `python` stands for the image's interpreter; `environment` is all that image, cloud and caller set. `stdout` and
    `stderr` are as in `subprocess`. It leads a session of its own, and dies with this thread.
    """
    root = str(Path.cwd())
    first, *rest = argv
    return subprocess.Popen(
        [python if first in _WORKER_PYTHONS else first, *rest],
        env={
            "PATH": f"{Path(python).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": root,
            # As short as on a real machine, however deep this folder lies: the path of a socket has 107 bytes at most.
            "TMPDIR": f"/proc/{os.getpid()}/cwd/tmp",
            "HOSTNAME": hostname,
            **environment,
        },
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509 (one thread here)
    )


def start_error(program: str, error: OSError) -> str:
    """Return the container runtime's words for a program that could not be started."""
    why = "permission denied" if isinstance(error, PermissionError) else "executable file not found in $PATH"
    return (
        "failed to create task for container: failed to create shim task: OCI runtime create failed: "
        f'unable to start container process: exec: "{program}": {why}: unknown'
    )

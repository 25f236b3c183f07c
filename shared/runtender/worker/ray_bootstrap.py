"""Start Ray in a pod, and on the first one the run's code. A container runs this text: `python -c <text> ROLE ARGUMENTS`.

`driver` fetches the package, starts a head where RAY_ADDRESS names none, waits until SF_RAY_EXPECTED_NODES nodes have
joined, and calls the entry point; `node` joins the head at SF_RAY_HEAD_ADDRESS and ends with it; `stage` only unpacks the
package at --folder. The text stands alone: the image holds Ray and the storage client, not the package.

Exit status: 2 there was nothing to call, 3 nodes are missing, else the entry point's.
"""

from __future__ import annotations

import argparse
import importlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFAULT_ENTRYPOINT = "scale_forecasting.ray_entry:main"
RAY = "/opt/venv/bin/ray"
INPUT_ERROR, NODES_MISSING = 2, 3

_PATIENCE_S = 600.0
_PAUSE_S = 2.0
_CONNECT_S = 5.0


class RayError(Exception):
    """The run cannot start; `status` is what the process ends with."""

    def __init__(self, message: str, status: int = INPUT_ERROR) -> None:
        super().__init__(message)
        self.status = status


def unpack(uri: str, folder: Path) -> None:
    """Download the zip at `uri` and extract it into `folder`: Ray's own processes import from there, too."""
    from google.cloud.storage import Client  # type: ignore[import-untyped] # noqa: PLC0415 - the image's

    bucket, _, name = uri.removeprefix("gs://").partition("/")
    if not uri.startswith("gs://") or not name:
        raise RayError(f"package {uri!r} is not gs://BUCKET/NAME.zip")
    archive = folder / "package.zip"
    client = Client(project=os.environ.get("SF_PROJECT_ID"))
    client.bucket(bucket).blob(name).download_to_filename(str(archive))
    if not zipfile.is_zipfile(archive):
        raise RayError(f"package {uri} is not a zip file; stage it again")
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)


def load(entrypoint: str) -> Callable[[Sequence[str]], object]:
    """Import MODULE:FUNCTION."""
    module, _, function = entrypoint.partition(":")
    if not module or not function:
        raise RayError(f"entry point {entrypoint!r} is not MODULE:FUNCTION")
    found = getattr(importlib.import_module(module), function, None)
    if not callable(found):
        raise RayError(f"entry point {entrypoint}: the module has no function {function!r}")
    return found  # type: ignore[no-any-return]


def await_nodes(expected: int, count: Callable[[], int], patience_s: float = _PATIENCE_S) -> None:
    """Wait until `count` says that all nodes have joined; RayError, with how many did, when they do not."""
    ends = time.monotonic() + patience_s
    joined = count()
    while joined < expected:
        if time.monotonic() >= ends:
            raise RayError(f"{joined} of {expected} Ray nodes joined within {patience_s:g} s", NODES_MISSING)
        time.sleep(_PAUSE_S)
        joined = count()
    print(f"ray: {joined} of {expected} nodes have joined", flush=True)


def resolve_head(address: str, patience_s: float = _PATIENCE_S) -> str:
    """Return `ip:port` of a head once it answers; RayError when it does not."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise RayError(f"SF_RAY_HEAD_ADDRESS is {address!r}, not HOST:PORT")
    ends = time.monotonic() + patience_s
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=_CONNECT_S) as connection:
                return f"{connection.getpeername()[0]}:{port}"
        except OSError as error:
            if time.monotonic() >= ends:
                raise RayError(
                    f"no Ray head at {address} for {patience_s:g} s: {error}", NODES_MISSING
                ) from error
        time.sleep(_PAUSE_S)


def drive(arguments: Sequence[str], folder: Path) -> object:
    """Be the head and the driver."""
    parser = argparse.ArgumentParser(prog="ray_bootstrap", add_help=False, allow_abbrev=False)
    parser.add_argument("--package-uri", required=True)
    parser.add_argument("--entrypoint", default=os.environ.get("SF_ENTRYPOINT") or DEFAULT_ENTRYPOINT)
    ours, theirs = parser.parse_known_args(arguments)
    unpack(ours.package_uri, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    sys.path.insert(0, str(folder))
    is_head = "RAY_ADDRESS" not in os.environ
    if is_head:
        start = ["start", "--head", "--port=6379", "--include-dashboard=false", "--disable-usage-stats"]
        _ray(start, check=True)
        os.environ["RAY_ADDRESS"] = "auto"
    try:
        expected = int(os.environ.get("SF_RAY_EXPECTED_NODES") or 1)
        if expected > 1:
            await_nodes(expected, _alive_nodes)
        sys.argv[1:] = theirs
        return load(ours.entrypoint)(theirs)
    finally:
        if is_head:
            _ray(["stop"])


def join(_arguments: Sequence[str], folder: Path) -> object:
    """Be a node until the head is gone."""
    unpack(os.environ["SF_PACKAGE_URI"], folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    address = resolve_head(os.environ.get("SF_RAY_HEAD_ADDRESS", ""))
    return _ray(["start", f"--address={address}", "--block", "--disable-usage-stats"])


def stage(arguments: Sequence[str], _scratch: Path) -> object:
    """Unpack the package for the containers that start after this one."""
    parser = argparse.ArgumentParser(prog="ray_bootstrap", add_help=False, allow_abbrev=False)
    parser.add_argument("--package-uri", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args(arguments)
    unpack(options.package_uri, options.folder)
    return 0


def main() -> object:
    """Run the program with the arguments of the process."""
    role, arguments = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="sf_ray_", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        os.environ.setdefault("MPLCONFIGDIR", scratch)
        if not os.access(Path.cwd(), os.W_OK):
            # The image's working directory belongs to root, and we are not.
            os.chdir(folder)
        try:
            return _ROLES[role](arguments, folder)
        except RayError as error:
            print(f"ray_bootstrap: {error}", file=sys.stderr)
            return error.status


_ROLES: dict[str, Callable[[Sequence[str], Path], object]] = {"driver": drive, "node": join, "stage": stage}


def _ray(arguments: Sequence[str], *, check: bool = False) -> int:
    return subprocess.run([RAY, *arguments], check=check).returncode  # noqa: S603 - our own words


def _alive_nodes() -> int:
    import ray  # type: ignore[import-not-found] # noqa: PLC0415 - the image's

    ray.init(address="auto", logging_level="ERROR", ignore_reinit_error=True)
    try:
        return sum(1 for node in ray.nodes() if node["Alive"])
    finally:
        ray.shutdown()


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[arg-type]

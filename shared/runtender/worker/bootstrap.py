"""Fetch the code of a run and call it. A container runs this file's text, as `python -c <text> ARGUMENTS`.

The image holds the interpreter and the libraries, not the code. So the text stands alone: it needs the
standard library and the image's storage client. It takes `--package-uri gs://...zip` (else SF_PACKAGE_URI)
and `--entrypoint MODULE:FUNCTION` (else SF_ENTRYPOINT) out of the arguments; the rest is the entry point's.

The exit status is what the entry point returns or exits with, as for a console script. 2 says that there was
nothing to call, with the reason on standard error.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_ENTRYPOINT = "scale_forecasting.vertex_entry:main"
INPUT_ERROR = 2


class BootstrapError(Exception):
    """There is nothing to call; the message says why and what to do."""


def fetch_package(uri: str, folder: Path) -> Path:
    """Download the zip at `uri` into `folder`; BootstrapError if there is none or it is no zip."""
    from google.api_core.exceptions import ClientError  # noqa: PLC0415 - see the module's first lines
    from google.cloud.storage import Client  # type: ignore[import-untyped] # noqa: PLC0415

    bucket, _, name = uri.removeprefix("gs://").partition("/")
    if not uri.startswith("gs://") or not name:
        raise BootstrapError(f"package {uri!r} is not gs://BUCKET/NAME.zip")
    target = folder / "scale_forecasting.zip"
    try:
        client = Client(project=os.environ.get("SF_PROJECT_ID"))
        client.bucket(bucket).blob(name).download_to_filename(str(target))
    except ClientError as error:
        raise BootstrapError(f"package {uri} cannot be read: {error.code} {error.message}") from error
    if not zipfile.is_zipfile(target):
        size = target.stat().st_size
        raise BootstrapError(f"package {uri} is not a zip file ({size} bytes); stage it again")
    return target


def load_entrypoint(entrypoint: str, package: Path) -> Callable[..., object]:
    """Import MODULE:FUNCTION from `package`, which comes before everything that is installed."""
    module_name, _, function_name = entrypoint.partition(":")
    if not module_name or not function_name:
        raise BootstrapError(f"entry point {entrypoint!r} is not MODULE:FUNCTION")
    sys.path.insert(0, str(package))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A library that the code itself misses is another fault, and its traceback says more.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        with zipfile.ZipFile(package) as archive:
            held = ", ".join(sorted({name.split("/")[0] for name in archive.namelist()})[:10])
        raise BootstrapError(
            f"entry point {entrypoint}: no module {error.name!r}; the zip has {held}"
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise BootstrapError(f"entry point {entrypoint}: the module has no function {function_name!r}")
    return function  # type: ignore[no-any-return]


def call_entrypoint(function: Callable[..., object], arguments: list[str]) -> object:
    """Call with the arguments in `sys.argv`, and as a list if the function takes one."""
    sys.argv[1:] = arguments
    takes_arguments = any(
        parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        for parameter in inspect.signature(function).parameters.values()
    )
    return function(arguments) if takes_arguments else function()


def run(arguments: list[str], folder: Path) -> object:
    """Do all of it, with `folder` for scratch files; return what the entry point returns."""
    os.environ.setdefault("MPLCONFIGDIR", str(folder))
    if not os.access(Path.cwd(), os.W_OK):
        # The image's working directory belongs to root, and we are not.
        os.chdir(folder)
    parser = argparse.ArgumentParser(prog="bootstrap", add_help=False, allow_abbrev=False)
    parser.add_argument("--package-uri", default=os.environ.get("SF_PACKAGE_URI"))
    parser.add_argument("--entrypoint", default=os.environ.get("SF_ENTRYPOINT") or DEFAULT_ENTRYPOINT)
    ours, theirs = parser.parse_known_args(arguments)
    if not ours.package_uri:
        raise BootstrapError("no package; pass --package-uri gs://BUCKET/NAME.zip or set SF_PACKAGE_URI")
    function = load_entrypoint(ours.entrypoint, fetch_package(ours.package_uri, folder))
    return call_entrypoint(function, theirs)


def main() -> object:
    """Run the program with the arguments of the process."""
    with tempfile.TemporaryDirectory(prefix="sf_vertex_", ignore_cleanup_errors=True) as folder:
        try:
            return run(sys.argv[1:], Path(folder))
        except BootstrapError as error:
            print(f"bootstrap: {error}", file=sys.stderr)
            return INPUT_ERROR


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[arg-type]

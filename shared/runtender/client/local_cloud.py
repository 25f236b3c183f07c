"""The running local cloud of a folder, as far as a command must know it: the environment its processes share.

The local cloud keeps a state file `.runtender/local.json` in the folder it was started in. A command that is run
there, or in a folder below, talks to it without any setting. The file of a cloud that is not running counts for
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from runtender.client.errors import ClientError

_HOME = Path(".runtender")
_STATE_FILE = _HOME / "local.json"

# The file may belong to a folder that somebody else wrote: it may point our clients at a local cloud, nothing else.
_PREFIX = "SF_"
_SUFFIX = "_EMULATOR_HOST"
# Without it gRPC would ask a proxy of the caller's for the loopback address.
_NO_PROXY = "no_grpc_proxy"


def cloud_folder(start: Path) -> Path | None:
    """Return `start` or the nearest folder above it in which a local cloud was started."""
    return next((folder for folder in (start, *start.parents) if (folder / _STATE_FILE).is_file()), None)


def home_folder(start: Path) -> Path | None:
    """Return `start` or the nearest folder above it that has, or had, a local cloud of its own."""
    return next((folder for folder in (start, *start.parents) if (folder / _HOME).is_dir()), None)


def cloud_environment(folder: Path) -> Mapping[str, str] | None:
    """Return the variables that point a client at the local cloud of `folder`; None while it is not running.

    Raises `ClientError` or `LocalCloudError` where its state file is not readable.
    """
    from runtender.local.home import CloudHome  # noqa: PLC0415 - most planes are not local

    state = CloudHome(folder).read_state()
    if state is None:
        return None
    try:
        variables = state["environment"].items()
        return {name: str(value) for name, value in variables if points_at_a_plane(name) or name == _NO_PROXY}
    except (KeyError, TypeError, AttributeError) as error:
        remedy = "'runtender local down' removes it"
        raise ClientError(f"{folder / _STATE_FILE} is no state file of a local cloud; {remedy}") from error


def points_at_a_plane(name: str) -> bool:
    """True for a variable that leads a client to a plane, or to an emulator in its stead."""
    return name.startswith(_PREFIX) or name.endswith(_SUFFIX)

"""The running local cloud of a checkout, as far as a command must know it: the environment its processes share.

The local cloud keeps a state file `.runtender/local.json` in the folder it was started in. A command that is run
there, or in a folder below, talks to it without any setting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from runtender.cli.exits import Failure

STATE_FILE = Path(".runtender") / "local.json"

# The file may belong to a folder that somebody else wrote: it may point our clients at a local cloud, nothing else.
_PREFIX = "SF_"
_SUFFIX = "_EMULATOR_HOST"


def find_state(start: Path) -> Path | None:
    """Return the state file of the local cloud of `start` or the nearest folder above it."""
    folders = (start, *start.parents)
    return next((folder / STATE_FILE for folder in folders if (folder / STATE_FILE).is_file()), None)


def read_environment(state: Path) -> Mapping[str, str]:
    """Return the variables that point a client at the local cloud; `Failure` where the file is not readable."""
    try:
        variables = json.loads(state.read_bytes())["environment"]
        return {name: str(value) for name, value in variables.items() if _points_at_a_plane(name)}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        remedy = "start the local cloud again with 'runtender local up', or remove the file"
        raise Failure(f"{state} is no state file of a local cloud; {remedy}") from error


def _points_at_a_plane(name: str) -> bool:
    return name.startswith(_PREFIX) or name.endswith(_SUFFIX)

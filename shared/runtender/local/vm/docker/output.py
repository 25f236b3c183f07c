"""What the `docker` command of a simulated machine prints: its errors, and what containers have printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence

from runtender.local.vm.docker.containers import Container

DAEMON_ERROR = 125
"""The exit code of a `docker run` that docker itself could not carry out."""


def fail(text: str, code: int) -> int:
    """Say what is wrong, and return the exit code."""
    say_error(text)
    return code


def say_error(text: str) -> None:
    """Print on standard error."""
    print(text, file=sys.stderr)  # noqa: T201


def entries(container: Container) -> Iterator[Mapping[str, str]]:
    """Go through what a container has printed, oldest first: objects of the json-file log."""
    older = sorted(container.folder.glob(f"{container.log.name}.*"), key=lambda path: -int(path.suffix[1:]))
    for path in (*older, container.log):
        if path.exists():
            with path.open(encoding="utf-8") as log:
                # The last line may still be on its way.
                yield from (json.loads(line) for line in log if line.endswith("\n"))


def show_entries(logged: Sequence[Mapping[str, str]]) -> None:
    """Print entries on the stream that each came from."""
    for entry in logged:
        stream = sys.stderr if entry["stream"] == "stderr" else sys.stdout
        stream.buffer.write(entry["log"].encode())
        stream.buffer.flush()

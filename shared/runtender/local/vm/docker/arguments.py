"""The flags of `docker run`: those that the stand-in acts on, those that it accepts, and none besides.

A flag that docker does not have ends a real run with 125; one that the stand-in merely does not know should do the same, so
that it is noticed and added.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runtender.local.vm.docker.containers import Request

_SHORT = {
    "-d": "--detach",
    "-e": "--env",
    "-v": "--volume",
    "-u": "--user",
    "-w": "--workdir",
    "-m": "--memory",
}
_SWITCHES = frozenset({"--detach", "--rm", "--init", "--read-only", "--privileged"})
_VALUED = frozenset(
    {
        "--cpus", "--device", "--entrypoint", "--env", "--hostname", "--label", "--log-driver", "--log-opt", "--memory",
        "--name", "--network", "--oom-score-adj", "--pids-limit", "--restart", "--security-opt", "--shm-size",
        "--stop-timeout", "--ulimit", "--user", "--volume", "--workdir",
    }
)  # fmt: skip
_SIZE = re.compile(r"(\d+)([kmg]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_UNBOUNDED = 1024**4


class UsageError(Exception):
    """Arguments that docker does not take."""


class RunArguments(NamedTuple):
    """`docker run`, taken apart."""

    request: Request
    detach: bool
    remove: bool


class _Flags(NamedTuple):
    switches: set[str]
    values: dict[str, list[str]]
    rest: list[str]

    def last(self, flag: str, default: str = "") -> str:
        return self.values.get(flag, [default])[-1]


def parse_run(arguments: Sequence[str]) -> RunArguments:
    """Read the arguments of `docker run`; raises `UsageError` in docker's words."""
    flags = _split(arguments)
    if not flags.rest:
        raise UsageError('"docker run" requires at least 1 argument.')
    image, *command = flags.rest
    entrypoint = flags.last("--entrypoint")
    argv = ([entrypoint] if entrypoint else []) + command
    if not argv:
        # What an image runs by itself is in the image, and there is none here.
        raise UsageError("docker: Error response from daemon: no command specified.")
    options = dict(option.partition("=")[::2] for option in flags.values.get("--log-opt", []))
    request = Request(
        name=flags.last("--name") or f"container-{os.urandom(4).hex()}",
        image=image,
        argv=tuple(argv),
        environment=_environment(flags.values.get("--env", [])),
        log_bytes=_size(options.get("max-size", "")),
        log_files=int(options.get("max-file", "1")),
    )
    return RunArguments(request=request, detach="--detach" in flags.switches, remove="--rm" in flags.switches)


def _split(arguments: Sequence[str]) -> _Flags:
    """Separate flags from the image and its command: the first word that is no flag ends them."""
    waiting = list(arguments)
    flags = _Flags(switches=set(), values={}, rest=waiting)
    while waiting and waiting[0].startswith("-"):
        word, has_value, value = waiting.pop(0).partition("=")
        flag = _SHORT.get(word, word)
        if flag in _SWITCHES and not has_value:
            flags.switches.add(flag)
        elif flag in _VALUED:
            if not has_value and not waiting:
                raise UsageError(f"flag needs an argument: {word}")
            flags.values.setdefault(flag, []).append(value if has_value else waiting.pop(0))
        else:
            raise UsageError(f"unknown flag: {word}")
    return flags


def _environment(items: Sequence[str]) -> Mapping[str, str]:
    """Read `NAME=value`; a bare NAME takes the caller's value, where it has one."""
    found: dict[str, str] = {}
    for item in items:
        name, has_value, value = item.partition("=")
        if has_value:
            found[name] = value
        elif name in os.environ:
            found[name] = os.environ[name]
    return found


def _size(text: str) -> int:
    if not text:
        return _UNBOUNDED
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"docker: Error response from daemon: invalid size: '{text}'")
    return int(match[1]) * _UNITS[match[2].lower()]

"""The `docker` command of a simulated machine: real processes for containers, docker's words and exit codes.

It knows the verbs and flags that a startup script needs. What it does not know it refuses, as docker refuses what it does
not know: silence would let a script pass here that fails on a real machine.
"""

from __future__ import annotations

import re
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runtender.local.vm.docker.arguments import UsageError
from runtender.local.vm.docker.containers import Container, all_containers, find
from runtender.local.vm.docker.images import PullError, pull
from runtender.local.vm.docker.output import DAEMON_ERROR, entries, fail, show_entries
from runtender.local.vm.layout import MachineHome

_FIELD = re.compile(r"{{\s*\.State\.(\w+)\s*}}|{{\s*\.(Id|Name)\s*}}")
_SIGNALS = {"KILL": signal.SIGKILL, "TERM": signal.SIGTERM, "INT": signal.SIGINT, "HUP": signal.SIGHUP}
_PS_ALL = frozenset({"-a", "--all", "-aq", "-qa"})
_PS_QUIET = frozenset({"-q", "--quiet", "-aq", "-qa"})
_PS_FLAGS = _PS_ALL | _PS_QUIET
_STOP_TIMEOUT_S = 10.0

Verb = Callable[[MachineHome, Sequence[str]], int]


def main(arguments: Sequence[str]) -> int:
    """Carry out one command on the machine whose folder comes first; return its exit code."""
    home = MachineHome(Path(arguments[0]))
    verb = arguments[1] if len(arguments) > 1 else ""
    if verb not in _VERBS:
        return fail(f"docker: '{verb}' is not a docker command.\nSee 'docker --help'", 1)
    try:
        return _VERBS[verb](home, arguments[2:])
    except UsageError as error:
        hint = "" if str(error).startswith("docker:") else f"\nSee 'docker {verb} --help'."
        return fail(f"{error}{hint}", DAEMON_ERROR if verb == "run" else 1)


def _run(home: MachineHome, arguments: Sequence[str]) -> int:
    from runtender.local.vm.docker.run import run  # noqa: PLC0415 - the other verbs start nothing, and start faster

    return run(home, arguments)


def _pull(home: MachineHome, arguments: Sequence[str]) -> int:
    (image,) = _exactly(1, "pull", arguments)
    try:
        pull(home, image)
    except PullError as error:
        return fail(str(error), 1)
    print(f"Status: Downloaded newer image for {image}\n{image}")  # noqa: T201
    return 0


def _logs(home: MachineHome, arguments: Sequence[str]) -> int:
    options, names = _options(arguments, {"--tail", "-n"})
    (name,) = _exactly(1, "logs", names)
    tail = options.get("--tail", options.get("-n", "all"))

    def show(container: Container) -> None:
        logged = entries(container)
        show_entries(list(logged if tail == "all" else deque(logged, maxlen=int(tail))))

    return _for_each(home, [name], show, quiet=True)


def _wait(home: MachineHome, arguments: Sequence[str]) -> int:
    def wait(container: Container) -> None:
        state = container.wait()
        print(state.ExitCode if state else 0, flush=True)  # noqa: T201

    return _for_each(home, arguments, wait, quiet=True)


def _stop(home: MachineHome, arguments: Sequence[str]) -> int:
    options, names = _options(arguments, {"-t", "--time", "--timeout"})
    timeout = float(next(iter(options.values()), _STOP_TIMEOUT_S))
    return _for_each(home, names, lambda container: container.stop(timeout))


def _kill(home: MachineHome, arguments: Sequence[str]) -> int:
    options, names = _options(arguments, {"-s", "--signal"})
    name = next(iter(options.values()), "KILL").removeprefix("SIG")
    if name not in _SIGNALS:
        raise UsageError(f"invalid signal: {name}")
    return _for_each(home, names, lambda container: container.signal(_SIGNALS[name]))


def _remove(home: MachineHome, arguments: Sequence[str]) -> int:
    names = [word for word in arguments if word not in {"-f", "--force"}]
    force = len(names) < len(arguments)
    running = [name for name in names if (one := find(home, name)) and one.state().Running]
    if running and not force:
        return fail(
            f"Error response from daemon: cannot remove container {running[0]}: container is running: stop the container "
            "before removing or force remove",
            1,
        )

    def remove(container: Container) -> None:
        container.signal(signal.SIGKILL)
        container.wait()
        container.remove()

    return _for_each(home, names, remove)


def _inspect(home: MachineHome, arguments: Sequence[str]) -> int:
    options, names = _options(arguments, {"-f", "--format"})
    template = next(iter(options.values()), "")
    for name in names:
        container = find(home, name)
        if container is None:
            return fail(f"Error: No such object: {name}", 1)
        try:
            print(_render(template, container))  # noqa: T201
        except AttributeError:
            return fail(f'template parsing error: template: :1: can\'t evaluate field in "{template}"', 1)
    return 0


def _render(template: str, container: Container) -> str:
    """Fill in a Go template, as far as it names fields; raises AttributeError for one that there is not."""
    facts = {"Id": container.id, "Name": f"/{container.request().name}"}
    state = container.state()

    def value(match: re.Match[str]) -> str:
        found = getattr(state, match[1]) if match[1] else facts[match[2]]
        return str(found).lower() if isinstance(found, bool) else str(found)

    text = _FIELD.sub(value, template)
    if not template or "{{" in text:
        raise AttributeError(template)
    return text


def _ps(home: MachineHome, arguments: Sequence[str]) -> int:
    if unknown := set(arguments) - _PS_FLAGS:
        raise UsageError(f"unknown flag: {sorted(unknown)[0]}")
    every = bool(_PS_ALL & set(arguments))
    short = bool(_PS_QUIET & set(arguments))
    for container in all_containers(home):
        state, request = container.state(), container.request()
        if every or state.Running:
            row = (container.id[:12], request.image, state.Status, request.name)
            print(row[0] if short else "  ".join(row))  # noqa: T201
    return 0


def _for_each(
    home: MachineHome, names: Sequence[str], act: Callable[[Container], None], *, quiet: bool = False
) -> int:
    """Do something with each container and repeat its name, as docker does; 1 when one is not there."""
    code = 0
    for name in names:
        container = find(home, name)
        if container is None:
            code = fail(f"Error response from daemon: No such container: {name}", 1)
            continue
        act(container)
        if not quiet:
            print(name)  # noqa: T201
    return code


def _options(arguments: Sequence[str], valued: set[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    names: list[str] = []
    waiting = list(arguments)
    while waiting:
        word, has_value, value = waiting.pop(0).partition("=")
        if word in valued and (has_value or waiting):
            options[word] = value if has_value else waiting.pop(0)
        elif word.startswith("-"):
            raise UsageError(f"unknown flag: {word}")
        else:
            names.append(word)
    return options, names


def _exactly(number: int, verb: str, words: Sequence[str]) -> Sequence[str]:
    if len(words) != number:
        raise UsageError(f'"docker {verb}" requires exactly {number} argument.')
    return words


_VERBS: Mapping[str, Verb] = {
    "inspect": _inspect,
    "kill": _kill,
    "logs": _logs,
    "ps": _ps,
    "pull": _pull,
    "rm": _remove,
    "run": _run,
    "stop": _stop,
    "wait": _wait,
}

"""The `docker` command of a simulated machine: real processes for containers, docker's words and exit codes.

It knows the verbs and flags that a startup script needs. What it does not know it refuses, as docker refuses what it does
not know: silence would let a script pass here that fails on a real machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from runtender.local.vm.docker import shim
from runtender.local.vm.docker.arguments import RunArguments, UsageError, parse_run
from runtender.local.vm.docker.containers import Container, all_containers, create, find
from runtender.local.vm.docker.images import PullError, is_pulled, pull
from runtender.local.vm.layout import MachineHome

_DAEMON_ERROR = 125
_FIELD = re.compile(r"{{\s*\.State\.(\w+)\s*}}|{{\s*\.(Id|Name)\s*}}")
_SIGNALS = {"KILL": signal.SIGKILL, "TERM": signal.SIGTERM, "INT": signal.SIGINT, "HUP": signal.SIGHUP}
_PS_ALL = frozenset({"-a", "--all", "-aq", "-qa"})
_PS_QUIET = frozenset({"-q", "--quiet", "-aq", "-qa"})
_PS_FLAGS = _PS_ALL | _PS_QUIET
_STOP_TIMEOUT_S = 10.0
_POLL_S = 0.02

Verb = Callable[[MachineHome, Sequence[str]], int]


def main(home: MachineHome, arguments: Sequence[str]) -> int:
    """Carry out one command and return its exit code."""
    verb = arguments[0] if arguments else ""
    if verb not in _VERBS:
        return _fail(f"docker: '{verb}' is not a docker command.\nSee 'docker --help'", 1)
    try:
        return _VERBS[verb](home, arguments[1:])
    except UsageError as error:
        hint = "" if str(error).startswith("docker:") else f"\nSee 'docker {verb} --help'."
        return _fail(f"{error}{hint}", _DAEMON_ERROR if verb == "run" else 1)


def _run(home: MachineHome, arguments: Sequence[str]) -> int:
    asked = parse_run(arguments)
    request = asked.request
    if not is_pulled(home, request.image):
        _say_error(f"Unable to find image '{request.image}' locally")
        try:
            pull(home, request.image)
        except PullError as error:
            return _fail(f"docker: {error}.", _DAEMON_ERROR)
    if taken := find(home, request.name):
        text = (
            f'docker: Error response from daemon: Conflict. The container name "/{request.name}" is already in use '
            f'by container "{taken.id}". You have to remove (or rename) that container to be able to reuse that name.'
        )
        return _fail(text, _DAEMON_ERROR)
    container = create(home, request)
    outcome = _start_shim(home, container)
    if outcome != "started":
        return _fail(f"docker: Error response from daemon: {outcome}.", container.state().ExitCode)
    if asked.detach:
        print(container.id)  # noqa: T201
        return 0
    return _stay(container, asked)


def _start_shim(home: MachineHome, container: Container) -> str:
    """Leave a process behind that runs the container, and return what it says of the start."""
    answer, question = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork() == 0:
        _become_shim(home, container, question)
    os.close(question)
    with os.fdopen(answer, encoding="utf-8") as pipe:
        return pipe.readline().strip()


def _become_shim(home: MachineHome, container: Container, question: int) -> None:
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    notes = os.open(container.folder / "shim.err", os.O_WRONLY | os.O_CREAT, 0o600)
    for descriptor, target in ((quiet, 0), (quiet, 1), (notes, 2)):
        os.dup2(descriptor, target)
    code = 1
    try:
        shim.main(home, container, os.fdopen(question, "w", encoding="utf-8"))
        code = 0
    finally:
        # The parent's own ending, its buffers and handlers, is not the shim's to repeat.
        os._exit(code)


def _stay(container: Container, asked: RunArguments) -> int:
    """Show the output of a container in the foreground, pass signals on, and end as it does."""

    def forward(number: int, _frame: FrameType | None) -> None:
        container.signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, forward)
    shown = 0
    over = False
    while not over:
        over = container.state().Status == "exited"
        entries = list(_entries(container))
        _show(entries[shown:])
        shown = len(entries)
        if not over:
            time.sleep(_POLL_S)
    code = container.state().ExitCode
    if asked.remove:
        shutil.rmtree(container.folder)
    return code


def _entries(container: Container) -> Iterator[Mapping[str, str]]:
    older = sorted(container.folder.glob(f"{container.log.name}.*"), key=lambda path: -int(path.suffix[1:]))
    for path in (*older, container.log):
        if path.exists():
            with path.open(encoding="utf-8") as log:
                # The last line may still be on its way.
                yield from (json.loads(line) for line in log if line.endswith("\n"))


def _show(entries: Sequence[Mapping[str, str]]) -> None:
    for entry in entries:
        stream = sys.stderr if entry["stream"] == "stderr" else sys.stdout
        stream.buffer.write(entry["log"].encode())
        stream.buffer.flush()


def _pull(home: MachineHome, arguments: Sequence[str]) -> int:
    (image,) = _exactly(1, "pull", arguments)
    try:
        pull(home, image)
    except PullError as error:
        return _fail(str(error), 1)
    print(f"Status: Downloaded newer image for {image}\n{image}")  # noqa: T201
    return 0


def _logs(home: MachineHome, arguments: Sequence[str]) -> int:
    options, names = _options(arguments, {"--tail", "-n"})
    (name,) = _exactly(1, "logs", names)
    tail = options.get("--tail", options.get("-n", "all"))

    def show(container: Container) -> None:
        entries = _entries(container)
        _show(list(entries if tail == "all" else deque(entries, maxlen=int(tail))))

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
        return _fail(
            f"Error response from daemon: cannot remove container {running[0]}: container is running: stop the container "
            "before removing or force remove",
            1,
        )

    def remove(container: Container) -> None:
        container.signal(signal.SIGKILL)
        container.wait()
        shutil.rmtree(container.folder)

    return _for_each(home, names, remove)


def _inspect(home: MachineHome, arguments: Sequence[str]) -> int:
    options, names = _options(arguments, {"-f", "--format"})
    template = next(iter(options.values()), "")
    for name in names:
        container = find(home, name)
        if container is None:
            return _fail(f"Error: No such object: {name}", 1)
        try:
            print(_render(template, container))  # noqa: T201
        except AttributeError:
            return _fail(f'template parsing error: template: :1: can\'t evaluate field in "{template}"', 1)
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
            code = _fail(f"Error response from daemon: No such container: {name}", 1)
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


def _fail(text: str, code: int) -> int:
    _say_error(text)
    return code


def _say_error(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201


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


if __name__ == "__main__":
    sys.exit(main(MachineHome(Path(sys.argv[1])), sys.argv[2:]))

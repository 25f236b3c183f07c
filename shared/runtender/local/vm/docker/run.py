"""`docker run` of a simulated machine: the one verb that starts something, and loads what that takes."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType

from runtender.local.vm.docker import shim
from runtender.local.vm.docker.arguments import RunArguments, parse_run
from runtender.local.vm.docker.containers import Container, create, find
from runtender.local.vm.docker.images import PullError, is_pulled, pull
from runtender.local.vm.docker.output import DAEMON_ERROR, entries, fail, say_error, show_entries
from runtender.local.vm.layout import MachineHome

_POLL_S = 0.02


def run(home: MachineHome, arguments: Sequence[str]) -> int:
    """Start a container and return the exit code of the command: its own in the foreground; raises `UsageError`."""
    asked = parse_run(arguments)
    request = asked.request
    if not is_pulled(home, request.image):
        say_error(f"Unable to find image '{request.image}' locally")
        try:
            pull(home, request.image)
        except PullError as error:
            return fail(f"docker: {error}.", DAEMON_ERROR)
    if taken := find(home, request.name):
        text = (
            f'docker: Error response from daemon: Conflict. The container name "/{request.name}" is already in use '
            f'by container "{taken.id}". You have to remove (or rename) that container to be able to reuse that name.'
        )
        return fail(text, DAEMON_ERROR)
    container = create(home, request)
    outcome = _start_shim(home, container)
    if outcome != "started":
        return fail(f"docker: Error response from daemon: {outcome}.", container.state().ExitCode)
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
        logged = list(entries(container))
        show_entries(logged[shown:])
        shown = len(logged)
        if not over:
            time.sleep(_POLL_S)
    code = container.state().ExitCode
    if asked.remove:
        container.remove()
    return code

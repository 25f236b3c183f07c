"""The simulated machine itself: the process that everything on it descends from.

It starts the startup script as the guest agent does, adopts whatever loses its parent, and ends with nothing left below it:
when it is told to, when the guest switches itself off, or when whoever started it is gone (its standard input ends).

Going down follows the real order. Containers are told to end first and killed when they do not; the script is told nothing,
because the real unit leaves its processes alone, and has until the power goes off.

Standard library only: each machine pays for this interpreter's start.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from runtender.local.vm.docker.containers import all_containers, recover
from runtender.local.vm.layout import MachineHome
from runtender.local.vm.processes import adopt_orphans, die_with_parent, end_descendants, reap

POWER_OFF = signal.SIGUSR1
"""What `shutdown` sends."""

_IDLE_S = 0.02
"""How often a machine that goes down looks whether it may."""


class Machine:
    """One machine from power on to power off."""

    def __init__(self, home: MachineHome, control: int) -> None:
        self._home = home
        self._control = control
        self._facts = home.facts()
        self._script = 0
        self._script_ended = False
        self._power_off_asked = False
        self._halt_at: float | None = None
        self._containers_until: float = 0.0

    def run(self) -> None:
        """Live until the power is off."""
        adopt_orphans()
        signal.signal(POWER_OFF, self._ask_power_off)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._home.stopping.unlink(missing_ok=True)
        self._home.machine_pid.write_text(str(os.getpid()), encoding="utf-8")
        recover(self._home)
        self._start_script()
        woken = _wake_on_signals()
        while self._listen(woken):
            self._script_ended = self._script in reap() or self._script_ended
            if self._power_off_asked and self._halt_at is None:
                self._go_down(self._facts.grace_s)
            if self._halt_at is not None and self._may_go_off(self._halt_at):
                break
        end_descendants()

    def _ask_power_off(self, _number: int, _frame: FrameType | None) -> None:
        self._power_off_asked = True

    def _start_script(self) -> None:
        script = self._home.script
        if not script.exists():
            self._script_ended = True
            return
        # Not waited for through this object: `reap` sees it end among all others.
        process = subprocess.Popen(
            ["bash", str(script)],
            cwd=self._home.root,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 (one thread here)
        )
        self._script = process.pid
        self._home.script_pid.write_text(str(process.pid), encoding="utf-8")

    def _listen(self, woken: int) -> bool:
        """Wait for a signal or an order; False when the order is to go off at once."""
        pause = None if self._halt_at is None else _IDLE_S
        ready, _, _ = select.select([self._control, woken], [], [], pause)
        if woken in ready:
            os.read(woken, 1024)
        if self._control not in ready:
            return True
        order = os.read(self._control, 1024).decode()
        if order and self._halt_at is None:
            self._go_down(float(order.split()[1]))
        return bool(order)

    def _go_down(self, grace_s: float) -> None:
        self._home.stopping.touch()
        now = time.monotonic()
        self._halt_at = now + grace_s
        self._containers_until = now + min(grace_s, self._facts.container_grace_s)
        for container in all_containers(self._home):
            container.signal(signal.SIGTERM)

    def _may_go_off(self, halt_at: float) -> bool:
        now = time.monotonic()
        running = [one for one in all_containers(self._home) if one.state().Running]
        if running and now >= self._containers_until:
            for container in running:
                container.signal(signal.SIGKILL)
        return now >= halt_at or (self._script_ended and not running)


def _wake_on_signals() -> int:
    """Return a descriptor that can be read after each signal, so that waiting on it misses none."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return woken


def main(arguments: Sequence[str]) -> None:
    """Run the machine whose folder is named."""
    Machine(MachineHome(Path(arguments[0])), sys.stdin.fileno()).run()

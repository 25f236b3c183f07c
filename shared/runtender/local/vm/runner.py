"""Runs simulated machines for real: each one a process tree of its own on this computer.

It acts on the events of the simulated Compute Engine, and reports back what machines print and when they are off. A machine
lives by a pipe from here: should this process die, whatever way, the pipe ends and the machine with it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, assert_never

from runtender.local.compute.events import Booted, Event, Halted, Removed, Stopping, StopReason
from runtender.local.errors import LocalCloudError
from runtender.local.http import RunningServer, serve
from runtender.local.tethered import Tethered
from runtender.local.vm.docker.containers import all_containers
from runtender.local.vm.guest import Network, WorkerEnvironment, fit_out, machine_command, machine_environment
from runtender.local.vm.layout import MachineHome
from runtender.local.vm.metadata import MetadataServer
from runtender.local.vm.processes import end_group

_END_S = 10.0
"""How long the last words of a machine may take to arrive once it is off; this is for a slow computer."""


class Reports(Protocol):
    """Where the runner tells what machines do."""

    def print_serial(self, instance_id: str, chunk: bytes) -> None:
        """Learn what a machine printed."""

    def guest_off(self, instance_id: str, boot: int) -> None:
        """Learn that a machine is off that came up as `boot`."""


class VmRunner:
    """All running machines, in folders below `root`. Events come from one thread, in order.

    Raises `LocalCloudError` where processes cannot be kept together as this needs it.
    """

    def __init__(
        self,
        *,
        root: Path,
        network: Network,
        reports: Reports,
        worker: WorkerEnvironment | None = None,
        scale: float = 1.0,
    ) -> None:
        if sys.platform != "linux":
            raise LocalCloudError(
                "simulated machines need Linux: run the local cloud there, or in a container"
            )
        self._root = root
        self._network = network
        self._reports = reports
        self._worker = worker or WorkerEnvironment()
        self._scale = scale
        self._machines: dict[str, _RunningMachine] = {}
        self._homes: dict[str, MachineHome] = {}

    def apply(self, event: Event) -> None:
        """Do what an event says."""
        match event:
            case Booted():
                self._boot(event)
            case Stopping(instance_id=instance_id):
                if machine := self._machines.get(instance_id):
                    machine.stop(event)
            case Halted(instance_id=instance_id):
                self._end(instance_id)
            case Removed(instance_id=instance_id):
                self._end(instance_id)
                if home := self._homes.pop(instance_id, None):
                    shutil.rmtree(home.root, ignore_errors=True)
            case _:
                assert_never(event)

    def processes(self, apart_from: Container[str] = ()) -> int:
        """Count the processes of all machines that are up, apart from those of these ids."""
        machines = tuple(self._machines.items())
        return sum(
            machine.process.count() for instance_id, machine in machines if instance_id not in apart_from
        )

    def signal_script(self, instance_id: str, number: int) -> None:
        """Send a signal to the shell that runs a machine's startup script, and to nobody else."""
        if machine := self._machines.get(instance_id):
            with suppress(OSError, ValueError):
                os.kill(int(machine.home.script_pid.read_text(encoding="utf-8")), number)

    def end_containers(self, instance_id: str, exit_code: int, *, out_of_memory: bool) -> None:
        """End what runs on a machine as if by itself, with this code."""
        if machine := self._machines.get(instance_id):
            for container in all_containers(machine.home):
                container.end(exit_code, out_of_memory=out_of_memory)

    def close(self) -> None:
        """End all machines at once and remove their folders."""
        for instance_id in tuple(self._machines):
            self._end(instance_id)
        for home in self._homes.values():
            shutil.rmtree(home.root, ignore_errors=True)
        self._homes.clear()

    def _boot(self, machine: Booted) -> None:
        home = MachineHome(self._root / f"{machine.name}-{machine.instance_id}")
        self._homes[machine.instance_id] = home
        metadata = MetadataServer(machine)
        server = serve(metadata.handle)
        fit_out(
            home,
            machine,
            network=self._network,
            metadata_port=server.port,
            worker=self._worker,
            scale=self._scale,
        )
        self._machines[machine.instance_id] = _RunningMachine.start(
            machine, home, metadata, server, self._reports
        )

    def _end(self, instance_id: str) -> None:
        if machine := self._machines.pop(instance_id, None):
            machine.end()


@dataclass(kw_only=True, slots=True)
class _RunningMachine:
    """One machine that is up: its process, its metadata server, and the thread that reads its console."""

    booted: Booted
    home: MachineHome
    process: Tethered
    metadata: MetadataServer
    server: RunningServer
    reports: Reports
    _reader: threading.Thread = field(init=False)

    @classmethod
    def start(
        cls,
        booted: Booted,
        home: MachineHome,
        metadata: MetadataServer,
        server: RunningServer,
        reports: Reports,
    ) -> _RunningMachine:
        process = Tethered.start(
            machine_command(home), folder=home.root, environment=machine_environment(home)
        )
        machine = cls(
            booted=booted, home=home, process=process, metadata=metadata, server=server, reports=reports
        )
        machine._reader = threading.Thread(target=machine._read_console, daemon=True)
        machine._reader.start()
        return machine

    def stop(self, order: Stopping) -> None:
        """Tell the machine to go down; of its preemption it hears first, and of a power cut nothing."""
        if not order.grace:
            return
        if order.reason is StopReason.PREEMPTED:
            self.metadata.preempt()
        self.process.tell(f"stop {order.grace.total_seconds()}")

    def end(self) -> None:
        """Switch the power off and wait until nothing is left."""
        self.metadata.close()
        self.process.end()
        self._end_orphans()
        self._reader.join(_END_S)
        self.server.close()

    def _end_orphans(self) -> None:
        """End the script's group, in case that the machine was killed before it could see to it."""
        with suppress(OSError, ValueError):
            end_group(int(self.home.script_pid.read_text(encoding="utf-8")))

    def _read_console(self) -> None:
        console = _Console(self.booted.name)
        with self.process.output as output:
            for line in output:
                self.reports.print_serial(self.booted.instance_id, console.line(line))
        self.process.wait()
        self.reports.guest_off(self.booted.instance_id, self.booted.boot)


class _Console:
    """Words of the startup script as they reach a real serial console: behind the guest agent's name, and with CR LF."""

    def __init__(self, name: str) -> None:
        self._agent = f"{name} google_metadata_script_runner[417]: startup-script: ".encode()

    def line(self, line: bytes) -> bytes:
        return self._agent + re.sub(rb"\r?\n$", b"", line) + b"\r\n"
